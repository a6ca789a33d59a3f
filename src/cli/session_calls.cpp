#include "cli/session_calls.hpp"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <string>
#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/session_documents.hpp"
#include "cli/usage.hpp"
#include "client/sending.hpp"
#include "run/terminal_text.hpp"
#include "session/client.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

/// The signal of "TERM", "SIGTERM" or "15".
Result<std::uint8_t> signal_of(std::string_view typed) {
  int number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  if (error == std::errc{} && end == typed.data() + typed.size() && number > 0 && number <= 64)
    return static_cast<std::uint8_t>(number);
  const std::string_view name = typed.starts_with("SIG") ? typed.substr(3) : typed;
  for (std::uint8_t each = 1; each <= 64; ++each) {
    const char* const known = ::sigabbrev_np(each);
    if (known != nullptr && name == known) return each;
  }
  return usage("usage", fmt::format("\"{}\" is not a signal", printable(typed)),
               "for example INT, TERM or 9");
}

Status write_to(int fd, const char* name, const std::string& text) {
  Status written = sys::write_all(fd, text);
  if (!written) written.error().message = std::string("cannot write to ") + name;
  return written;
}

Result<int> log_as_json(const SessionAsker& asker, const protocol::LogsRequest& request) {
  const protocol::LogAnswer log = SBX_TRY(asker.ask(request));
  return asker.answered(LogDocument{.call = request.call,
                                    .ended = log.ended,
                                    .stdout_bytes = log.out,
                                    .stderr_bytes = log.err,
                                    .stdout_ = log.out_text,
                                    .stderr_ = log.err_text});
}

}  // namespace

Result<int> list_calls(const SessionAsker& asker) {
  SBX_TRY(asker.most(1));
  const protocol::CallsAnswer facts = SBX_TRY(asker.ask(protocol::CallsRequest{}));
  if (asker.typed.output.json) return print(dump(session::headed(facts)));
  std::string text = fmt::format("{:>5}  {:<10}  {:>6}  {:<19}  {}\n", "CALL", "STATE", "STATUS",
                                 "SINCE", "COMMAND");
  for (const protocol::CallFacts& each : facts.calls) {
    const bool is_beside = each.background && each.state == protocol::CallState::running;
    text += fmt::format("{:>5}  {:<10}  {:>6}  {:<19}  {}\n", each.call,
                        std::string(name_of(each.state)) + (is_beside ? " &" : ""),
                        each.exit_status ? std::to_string(*each.exit_status) : "",
                        time_text(each.since), printable(each.command));
  }
  return print_fitted(text);
}

Result<int> show_log(const SessionAsker& asker) {
  SBX_TRY(asker.most(2));
  if (asker.typed.output.json && asker.typed.follow)
    return usage("usage", "--json and --follow exclude each other",
                 "sbx session wait first; --json prints what is there by now");
  protocol::LogsRequest request{.call = SBX_TRY(asker.call_number()), .follow = asker.typed.follow};
  if (asker.typed.output.json) return log_as_json(asker, request);
  session::Client client = SBX_TRY(session::Client::connect(asker.host, asker.operands.front()));
  for (bool has_begun = false;; has_begun = true) {
    const auto answer = client.ask(request);
    if (!answer && has_begun && is_gone(answer.error())) return kDone;  // and the call with it
    if (!answer) return fail(answer.error());
    SBX_TRY(write_to(STDOUT_FILENO, "stdout", run::made_safe(answer->out_text, STDOUT_FILENO)));
    SBX_TRY(write_to(STDERR_FILENO, "stderr", run::made_safe(answer->err_text, STDERR_FILENO)));
    if (!asker.typed.follow || answer->ended) return kDone;
    request.out = answer->out;
    request.err = answer->err;
  }
}

Result<int> wait_for_call(const SessionAsker& asker) {
  SBX_TRY(asker.most(2));
  const std::uint64_t call = SBX_TRY(asker.call_number());
  const protocol::CallEnded ended =
      SBX_TRY(asker.ask(protocol::WaitRequest{.call = call, .record = asker.typed.output.json}));
  if (!asker.typed.output.json) return ended.status;
  return print(ended.record.value_or("")) == kDone ? ended.status : exit_status::kCouldNot;
}

Result<int> kill_call(const SessionAsker& asker) {
  SBX_TRY(asker.most(3));
  protocol::KillRequest request{.call = SBX_TRY(asker.call_number())};
  if (asker.operands.size() > 2) request.signal = SBX_TRY(signal_of(asker.operands[2]));
  (void)SBX_TRY(asker.ask(request));
  return asker.answered(
      SignalDocument{.call = request.call, .signal = request.signal.value_or(SIGTERM)});
}

/// TEXT is a line, as a person types one.
Result<int> send_to_call(const SessionAsker& asker) {
  SBX_TRY(asker.most(3));
  const std::uint64_t call = SBX_TRY(asker.call_number());
  client::Input input{.end = asker.typed.end};
  if (asker.operands.size() > 2 && asker.operands[2] == "-")
    input.source = STDIN_FILENO;
  else if (asker.operands.size() > 2)
    input.text = asker.operands[2] + (asker.operands[2].ends_with('\n') ? "" : "\n");
  else if (!asker.typed.end)
    return usage("usage", "\"sbx session send\" needs what is to be sent",
                 "a line, - for standard input, or --end alone");
  client::Sending sending(SBX_TRY(session::Client::connect(asker.host, asker.operands.front())),
                          call, std::move(input));
  const std::uint64_t bytes = SBX_TRY(sending.run());
  return asker.answered(SentDocument{.call = call, .bytes = bytes, .ended = asker.typed.end});
}

}  // namespace sbx::cli
