#include "cli/why_command.hpp"

#include <unistd.h>

#include <sbx/outcome.hpp>

#include "base/read_stream.hpp"
#include "base/sys.hpp"
#include "base/tell.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "host/host.hpp"
#include "host/state.hpp"
#include "record/kept.hpp"
#include "record/why.hpp"
#include "record/words.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kLargestRecord = std::size_t{256} << 20;

Result<std::string> record_of(const Invocation& typed) {
  if (typed.operands.empty()) {
    const host::Host host = SBX_TRY(host::probe());
    return record::kept_record(host::state_directory(host));
  }
  const std::string& operand = typed.operands.front();
  if (operand == "-") return sys::read_stream(STDIN_FILENO, kLargestRecord);
  constexpr const char* kNameRecord = "name a file with a record, or - for standard input";
  auto file = sys::open_to_read(operand);
  if (!file) {
    if (file.error().hint.empty()) file.error().hint = kNameRecord;
    return fail(std::move(file).error());
  }
  auto text = sys::read_stream(file->get(), kLargestRecord);
  if (!text) {
    text.error().message = "'" + printable(operand) + "': " + text.error().message;
    text.error().hint = kNameRecord;
  }
  return text;
}

}  // namespace

int why_command(const Invocation& typed) {
  const auto complain = [&](const Error& error) {
    console().complain(error, typed.output.color);
    return error.kind == ErrorKind::usage ? kUsage : exit_status::kCouldNot;
  };
  if (typed.operands.size() > 1)
    return complain({.kind = ErrorKind::usage,
                     .code = "usage",
                     .message = "\"sbx why\" takes one record",
                     .hint = "a file, or - for standard input"});
  const auto record = record_of(typed);
  if (!record) return complain(record.error());
  const auto words = record::why_words(*record, paint_for(typed.output.color, STDOUT_FILENO));
  if (!words) return complain(words.error());
  return print_fitted(*words);
}

}  // namespace sbx::cli
