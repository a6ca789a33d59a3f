#include "cli/cell_words.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include <sbx/units.hpp>

#include "base/text.hpp"
#include "record/parts.hpp"
#include "record/words.hpp"
#include "run/terminal_text.hpp"

namespace sbx::cli {
namespace {

/// What came from inside never reaches a terminal raw.
std::string made_safe(const std::string& text, int fd) {
  return ::isatty(fd) == 1 ? run::for_terminal(text) : text;
}

void tell_lost(const Json& record) {
  if (record.value("state", "") != "lost") return;
  const std::string because = record.value("lost_because", "");
  write_stderr("sbx: the context's variables are lost" +
               (because.empty() ? "" : ": " + printable(because)) + "\n");
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

std::string end_words(const Json& record) {
  const Json& outcome = record["outcome"];
  const std::string status = outcome.value("status", "");
  const std::string detail = outcome.value("detail", "");
  if (status == "answered") return {};
  return detail.starts_with(status) ? detail : status + ": " + detail;
}

void tell_denials(const Json& record, Cures cures, const Paint& paint) {
  write_stderr(record::denial_words(record::denials_of(record), paint, !cures.of_session));
  const auto late = record.value("late_bytes", std::uint64_t{0});
  if (late > 0)
    write_stderr("sbx: " + describe(Bytes{late}) + " that came between two cells " +
                 (late == 1 ? "was" : "were") + " dropped\n");
}

void tell_cure(const Json& record, Cures cures) {
  const Json& outcome = record["outcome"];
  if (outcome.value("status", "") != "over-budget") return;
  write_stderr(record::more_words(outcome.value("hint", ""), !cures.of_budget));
}

void tell_outcome(const Json& record, Known known, Cures cures, const Paint& paint) {
  tell_denials(record, cures, paint);
  const std::string end = end_words(record);
  const bool is_known = known.interrupts && record["outcome"].value("status", "") == "cancelled";
  if (!end.empty() && !is_known) write_stderr("sbx: " + printable(end) + "\n");
  tell_cure(record, cures);
  if (!known.lost_state) tell_lost(record);
}

}  // namespace sbx::cli
