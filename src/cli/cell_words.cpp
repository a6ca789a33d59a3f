#include "cli/cell_words.hpp"

#include <unistd.h>

#include <csignal>

#include <sbx/units.hpp>

#include "base/signals.hpp"
#include "base/text.hpp"
#include "cli/console.hpp"
#include "record/network_words.hpp"
#include "record/parts.hpp"
#include "record/words.hpp"
#include "run/hints.hpp"
#include "run/terminal_text.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

/// A line of Python's above the last one: `  File "NAME", line N, in F` or, below a line of code,
/// the marks under a part of it.
std::string painted_frame(std::string_view line, const Paint& paint) {
  constexpr std::string_view kFile = "  File ";
  const auto begin = line.find(kFile);
  const auto end = line.rfind("\", line ");
  if (begin != line.npos && line.find_first_not_of(" |+-") == begin + 2 && end != line.npos) {
    const auto name = begin + kFile.size();
    return std::string(line.substr(0, name)) + paint.blue(std::string(line.substr(name)));
  }
  const auto mark = line.find_first_of("^~");
  if (mark == line.npos || line.find_first_not_of(" |^~") != line.npos) return std::string(line);
  return std::string(line.substr(0, mark)) + paint.red(std::string(line.substr(mark)));
}

void tell_lost(const Json& record) {
  if (member_or(record, "state", "") != "lost") return;
  const std::string because = member_or(record, "lost_because", "");
  console().tell("sbx: the context's variables are lost" +
                 (because.empty() ? "" : ": " + printable(because)) + "\n");
}

}  // namespace

bool has_picture(const protocol::Forms& data) {
  for (const auto& [mime, value] : data)
    if (mime.starts_with("image/")) return true;
  return false;
}

Result<UniqueFd> take_ending_signals() {
  return signals::take();
}

bool show_result(const protocol::CellResult& result, bool quiet, const std::string& cure) {
  const Json* const plain = result.data.find("text/plain");
  const std::string text = plain != nullptr ? session::text_of(*plain) : "";
  // As at an interpreter's own prompt: nothing is said about no value.
  const bool is_nothing = text.empty() || text == "None" || text == "undefined";
  bool printed = true;
  if (!is_nothing) printed = console().print(run::made_safe(text + "\n", STDOUT_FILENO));
  if (quiet) return printed;
  constexpr std::uint64_t kMostOfOneForm = std::uint64_t{4} << 20;  // the drivers' own
  for (const auto& [mime, bytes] : result.left_out.value_or(std::vector<protocol::LeftOutForm>()))
    console().tell("sbx: left out: " + printable(mime) + " of " + describe(Bytes{bytes}) +
                   (bytes > kMostOfOneForm
                        ? ": one form of a value has 4 MiB at most; write it to a file\n"
                        : ": output.results has no more room\n"));
  if (result.file)
    for (const auto& [mime, path] : *result.file)
      console().tell("sbx: " + printable(mime) + " is in " + printable(path) + "\n");
  else if (has_picture(result.data) && !cure.empty())
    console().tell("sbx: there is a picture: " + cure + "\n");
  return printed;
}

void tell_error(const protocol::CellError& error, const Paint& paint) {
  const std::string text = run::made_safe(
      error.traceback.empty() ? error.name + ": " + error.value : error.traceback, STDERR_FILENO);
  // The last line says what it was; the colours are ours, as a cell's own never reach a terminal.
  const auto last = text.rfind('\n', text.empty() ? 0 : text.size() - 1) + 1;
  std::string frames;
  for (std::size_t at = 0; at < last;) {
    const std::size_t end = text.find('\n', at);
    frames += painted_frame(std::string_view(text).substr(at, end - at), paint) + "\n";
    at = end + 1;
  }
  console().tell(frames + paint.red(text.substr(last)) + "\n");
}

std::string end_words(const Json& record) {
  const Json& outcome = part(record, "outcome");
  const std::string status = member_or(outcome, "status", "");
  const std::string detail = member_or(outcome, "detail", "");
  if (status == "answered") return {};
  return detail.starts_with(status) ? detail : status + ": " + detail;
}

std::string error_words(const Json& record) {
  const Json& answer = part(record, "answer");
  if (!answer.is_object() || !part(answer, "error").is_object()) return {};
  const Json& error = part(answer, "error");
  return member_or(error, "name", "") + ": " + member_or(error, "value", "");
}

void tell_denials(const Json& record, Remedies cures, const Paint& paint) {
  const auto where = cures.of_session ? record::Cured::command : record::Cured::session;
  console().tell(record::denial_words(record::denials_of(record), paint, where));
  console().tell(record::limit_words(record, where));
  console().tell(record::failure_words(record::failures_of(record), paint));
  const auto late = member_or(record, "late_bytes", std::uint64_t{0});
  if (late > 0)
    console().tell("sbx: " + describe(Bytes{late}) + " that came between two cells " +
                   (late == 1 ? "was" : "were") + " dropped\n");
}

void tell_hints(const Json& record, const std::vector<std::string>& notes, Remedies cures) {
  for (std::string note : notes) {
    // A command that starts the cell's session itself takes the option.
    const auto at = cures.of_session ? note.find(run::kAddToSession) : std::string::npos;
    if (at != std::string::npos) note.replace(at, run::kAddToSession.size(), "add");
    console().tell("sbx: " + printable(note) + "\n");
  }
  console().tell(record::hint_words(record::hints_of(record), cures.of_session
                                                                  ? record::Cured::command
                                                                  : record::Cured::session));
}

void tell_cure(const Json& record, Remedies cures) {
  const Json& outcome = part(record, "outcome");
  if (member_or(outcome, "status", "") != "over-budget") return;
  console().tell(record::more_words(member_or(outcome, "hint", ""), cures.of_budget
                                                                        ? record::Cured::command
                                                                        : record::Cured::session));
}

void tell_outcome(const Json& record, const std::vector<std::string>& notes, AlreadySaid known,
                  Remedies cures, const Paint& paint) {
  tell_denials(record, cures, paint);
  tell_hints(record, notes, cures);
  if (const auto lost = record.find("write_error"); lost != record.end())
    console().tell("sbx: cannot write " + member_or(*lost, "stream", "") + ": " +
                   member_or(*lost, "error", "") + "; the rest of it is dropped\n");
  const std::string end = end_words(record);
  const bool is_known =
      known.interrupts && member_or(part(record, "outcome"), "status", "") == "cancelled";
  if (!end.empty() && !is_known) console().tell("sbx: " + printable(end) + "\n");
  tell_cure(record, cures);
  if (!known.lost_state) tell_lost(record);
}

}  // namespace sbx::cli
