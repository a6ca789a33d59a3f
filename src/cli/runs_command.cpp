#include "cli/runs_command.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/console.hpp"
#include "record/words.hpp"
#include "run/under_way.hpp"

namespace sbx::cli {
namespace {

using run::UnderWay;

std::string command_text(const UnderWay& run) {
  constexpr std::size_t kLongest = 200;
  std::string text;
  for (const std::string& word : run.command) text += (text.empty() ? "" : " ") + shell_word(word);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " …";
  return printable(text);
}

std::string table(const std::vector<UnderWay>& runs) {
  std::size_t widest = 6;
  for (const UnderWay& run : runs) widest = std::max(widest, run.policy.size());
  std::string text = fmt::format("{:<18}  {:>7}  {:<19}  {:<{}}  {}\n", "ID", "PID", "SINCE",
                                 "POLICY", widest, "COMMAND");
  for (const UnderWay& run : runs)
    text += fmt::format("{:<18}  {:>7}  {:<19}  {:<{}}  {}\n", run.id,
                        run.pid > 0 ? std::to_string(run.pid) : "?", time_text(run.since),
                        run.policy, widest, command_text(run));
  return text;
}

std::string as_json(const std::vector<UnderWay>& runs) {
  Json json;
  json["schema"] = "sbx.ps/1";
  json["sbx"] = SBX_VERSION;
  json["runs"] = Json::array();
  for (const UnderWay& run : runs) {
    Json each;
    each["id"] = run.id;
    each["policy"] = run.policy;
    each["pid"] = run.pid > 0 ? Json(run.pid) : Json(nullptr);
    each["since"] = run.since > 0 ? Json(run.since) : Json(nullptr);
    put_names(each, "command", run.command);
    json["runs"].push_back(std::move(each));
  }
  return dump(json);
}

int list_runs(const Invocation& typed) {
  if (!typed.operands.empty())
    return complain(typed, {.kind = ErrorKind::usage,
                            .code = "usage",
                            .message = "\"sbx ps\" takes no operands",
                            .hint = "leave it out: sbx ps"});
  const auto runs = run::runs_under_way();
  if (!runs) return complain(typed, runs.error());
  if (!typed.output.json && runs->empty()) {  // a program that parses stdout then finds no runs
    console().tell("no run is under way; \"sbx session list\" lists sessions\n");
    return kDone;
  }
  return typed.output.json ? print(as_json(*runs)) : print_fitted(table(*runs));
}

/// The run for an id, a prefix of one, or a process id.
Result<const UnderWay*> find(const std::vector<UnderWay>& runs, const std::string& typed) {
  std::vector<const UnderWay*> meant;
  for (const UnderWay& run : runs)
    if ((!typed.empty() && run.id.starts_with(typed)) || run.id.starts_with("r_" + typed) ||
        std::to_string(run.pid) == typed)
      meant.push_back(&run);
  if (meant.size() == 1 && !typed.empty()) return meant.front();
  const bool several = meant.size() > 1 && !typed.empty();
  return fail(Error{
      .kind = ErrorKind::usage,
      .code = "no-such-run",
      .message = several ? fmt::format("\"{}\" matches {} runs", printable(typed), meant.size())
                         : fmt::format("no run matches \"{}\"", printable(typed)),
      .hint = "\"sbx ps\" lists them"});
}

int stop(const Invocation& typed) {
  if (typed.operands.empty() != typed.all)
    return complain(typed, {.kind = ErrorKind::usage,
                            .code = "usage",
                            .message = typed.all ? "--all and an ID exclude each other"
                                                 : "\"sbx stop\" needs an ID",
                            .hint = "\"sbx ps\" lists the runs; --all stops all of them"});
  const auto runs = run::runs_under_way();
  if (!runs) return complain(typed, runs.error());
  std::vector<const UnderWay*> chosen;
  for (const std::string& operand : typed.operands) {
    const auto found = find(*runs, operand);
    if (!found) return complain(typed, found.error());  // a typing error must stop nothing
    if (std::ranges::find(chosen, *found) == chosen.end()) chosen.push_back(*found);
  }
  if (typed.all)
    for (const UnderWay& run : *runs) chosen.push_back(&run);
  int status = kDone;
  for (const UnderWay* const run : chosen)
    if (const Status ended = run::end_run(*run); !ended && ended.error().code != "no-such-run")
      status = ended.error().code == "not-ended" ? complain(typed, ended.error(), kFindings)
                                                 : complain(typed, ended.error());
  return status;
}

}  // namespace

int runs_command(const Invocation& typed) {
  return typed.command == "ps" ? list_runs(typed) : stop(typed);
}

}  // namespace sbx::cli
