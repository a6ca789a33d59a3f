#include "cli/session_asker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "base/tell.hpp"
#include "base/text.hpp"
#include "cli/console.hpp"
#include "cli/usage.hpp"
#include "record/words.hpp"
#include "session/json.hpp"

namespace sbx::cli {

Status SessionAsker::most(std::size_t count) const {
  if (operands.size() <= count) return {};
  return usage(
      "usage",
      fmt::format("\"sbx {}\" takes no operand \"{}\"", typed.command, printable(operands[count])),
      fmt::format("sbx {} --help", typed.command));
}

Result<std::uint64_t> SessionAsker::call_number() const {
  if (operands.size() < 2)
    return usage("usage", fmt::format("\"sbx {}\" needs the number of a call", typed.command),
                 fmt::format("sbx session calls {} lists them", printable(operands.front())));
  const std::string& text = operands[1];
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    return usage("usage", fmt::format("\"{}\" is not a number of a call", printable(text)),
                 fmt::format("sbx session calls {} lists them", printable(operands.front())));
  return number;
}

Result<protocol::BroughtOutAnswer> SessionAsker::keep_as(const std::string& set) const {
  return ask_reader(protocol::KeepRequest{.set = set, .silent = is_silent()});
}

int SessionAsker::answered(const Json& body, int status) const {
  if (!typed.output.json) return status;
  return print(dump(session::headed(body))) == kDone ? status : exit_status::kCouldNot;
}

int SessionAsker::tell(const Error& error) const {
  console().complain(error, typed.output.color);
  return exit_status::kCouldNot;
}

bool is_gone(const Error& error) {
  return error.code == "no-such-session" || error.code == "session-gone";
}

}  // namespace sbx::cli
