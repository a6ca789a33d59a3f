#include "cli/complaint.hpp"

#include <unistd.h>

#include <utility>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "record/record.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"

namespace sbx::cli {
namespace {

/// With the words of a record.
Json complaint_json(const Invocation& typed, const Error& error) {
  run::Answer answer;
  answer.errors = {error};
  Json outcome = record::outcome_json(answer);
  Json what{{"code", outcome["code"]},
            {"reason", outcome["reason"]},
            {"message", outcome["detail"]},
            {"hint", outcome.contains("hint") ? outcome["hint"] : Json(nullptr)}};
  for (const char* const each : {"kind", "side"})
    if (outcome.contains(each)) what[each] = outcome[each];
  return {{"schema", "sbx.error/1"},
          {"sbx", SBX_VERSION},
          {"command", typed.command},
          {"error", std::move(what)}};
}

}  // namespace

bool print_error(const Invocation& typed, const Error& error) {
  const bool as_json = typed.output.json || typed.format == "json";
  return !as_json || console().print(dump(complaint_json(typed, error)));
}

int complain(const Invocation& typed, const Error& error, int status) {
  console().complain(error, typed.output.color);
  return print_error(typed, error) ? status : exit_status::kCouldNot;
}

int complain(const Invocation& typed, const Error& error) {
  return complain(typed, error, error.kind == ErrorKind::usage ? kUsage : exit_status::kCouldNot);
}

}  // namespace sbx::cli
