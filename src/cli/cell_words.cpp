#include "cli/cell_words.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include <sbx/units.hpp>

#include "base/tell.hpp"
#include "base/text.hpp"
#include "record/words.hpp"
#include "run/terminal_text.hpp"

namespace sbx::cli {
namespace {

/// What came from inside never reaches a terminal raw.
std::string made_safe(const std::string& text, int fd) {
  return ::isatty(fd) == 1 ? run::for_terminal(text) : text;
}

}  // namespace

bool has_picture(const Json& data) {
  for (const auto& [mime, value] : data.items())
    if (mime.starts_with("image/")) return true;
  return false;
}

Result<UniqueFd> take_ending_signals() {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    ::sigaddset(&taken, signal);
  }
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);
  UniqueFd signals(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals.valid()) return signals;
  return fail_errno(ErrorKind::internal, "no-signalfd", "cannot receive signals");
}

bool show_result(const Json& result, bool quiet, const std::string& cure) {
  const Json& data = result["data"];
  const std::string text = data.value("text/plain", "");
  // As at an interpreter's own prompt: nothing is said about no value.
  const bool is_nothing = text.empty() || text == "None" || text == "undefined";
  bool printed = true;
  if (!is_nothing) printed = record::print_answer(made_safe(text + "\n", STDOUT_FILENO));
  if (quiet) return printed;
  constexpr std::uint64_t kMostOfOneForm = std::uint64_t{4} << 20;  // the drivers' own
  for (const Json& each : result.value("left_out", Json::array())) {
    const auto bytes = each.value("bytes", std::uint64_t{0});
    write_stderr(
        "sbx: left out: " + printable(each.value("mime", "")) + " of " + describe(Bytes{bytes}) +
        (bytes > kMostOfOneForm ? ": one form of a value has 4 MiB at most; write it to a file\n"
                                : ": output.results has no more room\n"));
  }
  if (const Json file = result.value("file", Json()); file.is_object())
    for (const auto& [mime, path] : file.items())
      write_stderr("sbx: " + printable(mime) + " is in " + printable(path.get<std::string>()) +
                   "\n");
  else if (has_picture(data) && !cure.empty())
    write_stderr("sbx: there is a picture: " + cure + "\n");
  return printed;
}

void tell_error(const Json& error) {
  std::string text = error.value("traceback", "");
  if (text.empty()) text = error.value("name", "") + ": " + error.value("value", "");
  write_stderr(made_safe(text + "\n", STDERR_FILENO));
}

void tell_outcome(const Json& record, Known known) {
  const Json& outcome = record["outcome"];
  const std::string status = outcome.value("status", "");
  const std::string state = record.value("state", "");
  const std::string because = record.value("lost_because", "");
  const bool is_known = known.interrupts && status == "cancelled";
  if (status != "answered" && !is_known)
    write_stderr("sbx: " + status + ": " + printable(outcome.value("detail", "")) + "\n");
  if (state == "lost" && !known.lost_state)
    write_stderr("sbx: what the context remembered before is lost" +
                 (because.empty() ? "" : ": " + printable(because)) + "\n");
}

}  // namespace sbx::cli
