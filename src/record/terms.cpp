#include "record/terms.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace sbx::record {
namespace {

constexpr auto kStatus = TermKind::status;
constexpr auto kKey = TermKind::record_key;
constexpr auto kMode = TermKind::workspace_mode;
constexpr auto kExit = TermKind::exit_status;
constexpr auto kPromise = TermKind::promise;
constexpr auto kForm = TermKind::form;

const char* kind_text(TermKind kind) {
  switch (kind) {
    case TermKind::status:
      return "status";
    case TermKind::record_key:
      return "record key";
    case TermKind::exit_status:
      return "exit status";
    case TermKind::workspace_mode:
      return "mode of filesystem.workspace";
    case TermKind::promise:
      return "what \"degraded\" can name; sbx-security(7) says more";
    case TermKind::form:
      return "form of isolation; sbx-security(7) says more";
  }
  return "";
}

constexpr auto kTerms = std::to_array<Term>({
    {"exited", kStatus, "The command ended by itself, with exit_code."},
    {"signaled", kStatus, "A signal that sbx did not send killed the command."},
    {"over-budget", kStatus,
     "A budget was spent and the run was ended. \"reason\" names the budget and \"rule\" the line "
     "that set it."},
    {"denied", kStatus, "A denied system call ended the run, because syscalls.denied is \"kill\"."},
    {"cancelled", kStatus, "A signal to sbx ended the run, as Ctrl-C does."},
    {"lost", kStatus,
     "The sandbox's first process was killed from outside after the command began: how the command "
     "ended is not "
     "known, and it may have had effects."},
    {"answered", kStatus,
     "Of a cell: its code came to its end, or raised an error, which \"answer\" has. \"success\" "
     "is "
     "true where it raised none."},
    {"died", kStatus,
     "Of a cell: its interpreter ended, with all variables. \"detail\" says how; the next cell "
     "starts a new one."},
    {"interrupted", kStatus,
     "Of a cell: \"sbx session interrupt\" ended it; the interpreter and its variables stay."},
    {"overlay", kMode,
     "The program sees the directory and changes a copy: --diff shows what it changed, --apply and "
     "--out keep it."},
    {"read-only", kMode, "The program sees the directory and can't write to it."},
    {"read-write", kMode, "The program changes the directory itself, while it runs."},
    {"empty", kMode, "The program begins in an empty directory, and what it writes is gone."},
    {"setup-failed", kStatus, "Nothing ran. \"code\" and \"detail\" say why."},
    {"success", kKey, "True when the command exited with 0."},
    {"limits_met", kKey,
     "Limits that were reached. Most of them only refuse more, as limits.processes does: then the "
     "command may have "
     "gone on, and failed or not."},
    {"denials", kKey,
     "What the policy refused: system calls, destinations and, with --explain, paths; each with "
     "its rule and the line "
     "that would allow it."},
    {"degraded", kKey,
     "Rules that this machine enforces by a weaker mechanism than usual, or not at all: \"why\", "
     "and what is done "
     "\"instead\". --require refuses to run so."},
    {"enforced", kKey, "The mechanism behind each rule of this run."},
    {"network", kKey,
     "What went through each rule of network.allow, and the allowed destinations that failed."},
    {"usage", kKey, "What the run used. A value is null where it is not known."},
    {"changes", kKey, "What the run did to its copy-on-write workspace."},
    {"appeared", kKey,
     "Guarded names that were not in a live grant when the run began, and were at its end."},
    {"hints", kKey,
     "What a failed program may have met that no refused call tells, and the options that would "
     "let "
     "it go on."},
    {"hazards", kKey,
     "What the run left in a live grant that programs of the host may stumble over."},
    {"left_running", kKey,
     "What still ran when the command had ended, as a server that it left in the background, and "
     "was ended with it. In a session, session exec -d keeps it."},
    {"write_error", kKey,
     "Output that could not be written, as on a full disk. The exit status is 125."},
    {"kept", kKey, "The change set that --keep made."},
    {"applied", kKey, "What --apply wrote to the workspace, and what it left."},
    {"out", kKey, "The files that --out copied, and those that it left."},
    {"names", kPromise,
     "No name of the machine can be seen. Without namespaces paths and processes can be probed."},
    {"tmp", kPromise,
     "A /tmp of the program's own. Without namespaces TMPDIR and HOME name private directories, "
     "and /tmp is refused."},
    {"ipc", kPromise,
     "Shared memory, semaphores, queues and sockets of the program's own. Without namespaces most "
     "are refused."},
    {"end", kPromise,
     "Nothing of the program outlives the run, whoever kills sbx. Without namespaces three "
     "processes killed at once can leave some."},
    {"landlock", kPromise, "The second wall around files, and signals, on kernels that have it."},
    {"proc", kPromise,
     "A /proc of the program's own. Else a few files of the machine's can be read."},
    {"hostname", kPromise,
     "A host name of the sandbox's own. Else the program sees the machine's."},
    {"syscalls.named", kPromise,
     "Refused calls are told by name. A listener outside of sbx keeps them from it."},
    {"trusted-policy", kPromise, "Nobody but the caller and root can change the policy's file."},
    {"core dumps", kPromise, "The machine writes no memory of a program that crashed to a file."},
    {"own-uid", kForm, "Without namespaces, with a uid that no other process has."},
    {"same-uid", kForm, "Without namespaces, with the caller's own uid."},
    {"1", kExit,
     "The command's own; or, after a command that exited with 0, --apply met a conflict or a "
     "pattern that matches "
     "nothing."},
    {"2", kExit,
     "The command's own under sbx run; of the other commands: the command line is wrong."},
    {"124", kExit, "limits.wall_time was spent."},
    {"125", kExit,
     "sbx could not do its job: nothing ran (status setup-failed), or an output, the record or a "
     "file could not be "
     "written, or the run was lost."},
    {"126", kExit, "The command exists and can't be executed."},
    {"127", kExit, "The command was not found."},
    {"137", kExit,
     "limits.memory was spent; or the command's own, as a shell exits when SIGKILL killed its last "
     "command. "
     "outcome.status of the record tells which."},
    {"152", kExit, "limits.cpu_time was spent."},
    {"153", kExit, "limits.file_size, limits.disk or an output limit was exceeded."},
    {"159", kExit, "A denied system call ended the run, because syscalls.denied is \"kill\"."},
});

constexpr Term kSignal{"128+N", kExit, ""};

/// The signal for an exit status from 129 to 192; 0 for any other.
int signal_of(std::string_view name) {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_one = error == std::errc() && end == name.data() + name.size();
  return is_one && number > 128 && number <= 128 + 64 ? number - 128 : 0;
}

}  // namespace

const Term* find_term(std::string_view name) {
  const auto found =
      std::ranges::find(kTerms, name, [](const Term& term) { return std::string_view(term.name); });
  if (found != kTerms.end()) return &*found;
  return signal_of(name) != 0 ? &kSignal : nullptr;
}

std::vector<std::string_view> term_names() {
  std::vector<std::string_view> names;
  for (const Term& term : kTerms) names.emplace_back(term.name);
  return names;
}

std::string term_text(const std::string& name) {
  const Term* const term = find_term(name);
  if (term == nullptr) return {};
  if (term != &kSignal)
    return fmt::format("{}\n  {}\n  about     {} (sbx-record(5), sbx(1))\n", name, term->meaning,
                       kind_text(term->kind));
  const int signal = signal_of(name);
  const char* const abbreviation = ::sigabbrev_np(signal);
  return fmt::format(
      "{}\n  Signal {}{} killed the command, or ended the run.\n  about     {} (sbx(1))\n", name,
      signal, abbreviation == nullptr ? "" : fmt::format(", SIG{},", abbreviation),
      kind_text(term->kind));
}

}  // namespace sbx::record
