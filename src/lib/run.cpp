#include <sbx/run.hpp>

#include <utility>

#include "lib/process.hpp"
#include "lib/run_result.hpp"

namespace sbx {

RunAnswer lib::answer_of(End end) {
  RunAnswer answer;
  if (end.errno_value != 0) {
    answer.error = {end.errno_value, std::move(end.error)};
    return answer;
  }
  RunResult result;
  result.exit_status = end.exit_status;
  result.record = std::move(end.answer);
  if (auto record = read_record(result.record)) {
    result.status = std::move(record->status);
    result.success = record->success;
    result.outcome = std::move(record->outcome);
    result.error = std::move(record->error);
  }
  answer.result = std::move(result);
  return answer;
}

RunAnswer run_program(const RunOptions& options) {
  // If the caller dies, nobody reads the answer.
  std::vector<std::string> words{lib::program_or_installed(options.program), "run",
                                 "--die-with-parent", "--report-fd",
                                 std::to_string(lib::kReportDescriptor)};
  // --json puts the output into the record; the copy on stdout is dropped.
  if (options.capture) words.emplace_back("--json");
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  words.insert(words.end(), options.command.begin(), options.command.end());
  return lib::answer_of(
      lib::run_command({.words = std::move(words), .drops_output = options.capture}));
}

}  // namespace sbx
