#include <sbx/session.hpp>

#include <unistd.h>

#include <utility>

#include "lib/cell_record.hpp"
#include "lib/process.hpp"
#include "lib/run_result.hpp"

namespace sbx {
namespace {

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// sbx answers on stdout, in JSON.
lib::End ask(std::vector<std::string> words, const std::string* input = nullptr) {
  return lib::run_command({.words = std::move(words),
                           .answers_on = STDOUT_FILENO,
                           .keeps_messages = true,
                           .input = input});
}

}  // namespace

Session::Session(std::string program, std::string name, bool is_own)
    : program_(std::move(program)), name_(std::move(name)), is_own_(is_own) {}

Session::Session(Session&& other) noexcept
    : program_(std::move(other.program_)),
      name_(std::move(other.name_)),
      is_own_(std::exchange(other.is_own_, false)) {}

Session& Session::operator=(Session&& other) noexcept {
  if (this == &other) return *this;
  if (is_own_) (void)stop();
  program_ = std::move(other.program_);
  name_ = std::move(other.name_);
  is_own_ = std::exchange(other.is_own_, false);
  return *this;
}

Session::~Session() {
  if (is_own_) (void)stop();
}

SessionAnswer Session::start(const SessionOptions& options) {
  std::string program = lib::program_or_installed(options.program);
  std::vector<std::string> words{program, "session", "start", "--json"};
  if (!options.name.empty()) words.push_back(options.name);
  append(words, options.arguments);
  lib::End end = ask(std::move(words));
  SessionAnswer answer;
  std::string name = lib::session_name(end.answer);
  if (end.errno_value != 0)
    answer.error = {end.errno_value, std::move(end.error)};
  else if (end.exit_status != 0 || name.empty())
    answer.error = {0, std::move(end.messages)};
  else
    answer.session = Session(std::move(program), std::move(name), true);
  return answer;
}

Session Session::named(std::string name, std::string program) {
  return {lib::program_or_installed(program), std::move(name), false};
}

RunAnswer Session::exec(const CallOptions& options) const {
  std::vector<std::string> words{program_,
                                 "session",
                                 "exec",
                                 "--die-with-parent",
                                 name_,
                                 "--report-fd",
                                 std::to_string(lib::kReportDescriptor)};
  if (options.capture) words.emplace_back("--json");
  append(words, options.arguments);
  append(words, options.command);
  return lib::answer_of(
      lib::run_command({.words = std::move(words), .drops_output = options.capture}));
}

CellAnswer Session::eval(const CellOptions& options) const {
  std::vector<std::string> words{program_, "session", "eval", "--die-with-parent", name_, "--json"};
  if (!options.language.empty()) append(words, {"--lang", options.language});
  if (!options.context.empty()) append(words, {"--context", options.context});
  append(words, options.arguments);
  words.emplace_back("-");
  lib::End end = ask(std::move(words), &options.code);
  CellAnswer answer;
  if (end.errno_value != 0) {
    answer.error = {end.errno_value, std::move(end.error)};
    return answer;
  }
  CellResult result = lib::cell_result(end.answer);
  result.exit_status = end.exit_status;
  result.record = std::move(end.answer);
  answer.result = std::move(result);
  return answer;
}

CommandAnswer Session::command(const std::string& word,
                               const std::vector<std::string>& operands) const {
  std::vector<std::string> words{program_, "session", word, "--json", name_};
  append(words, operands);
  lib::End end = ask(std::move(words));
  return {.exit_status = end.exit_status,
          .json = std::move(end.answer),
          .messages = std::move(end.messages),
          .error = {end.errno_value, std::move(end.error)}};
}

CommandAnswer Session::stop() {
  is_own_ = false;
  return command("stop");
}

}  // namespace sbx
