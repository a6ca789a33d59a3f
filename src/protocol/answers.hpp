#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sbx/error.hpp>
#include <sbx/outcome.hpp>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "protocol/cell_record.hpp"
#include "protocol/entries.hpp"
#include "protocol/packet.hpp"

/// What a session answers, and what it says while something runs. A struct is one packet, or a part
/// of one; what `sbx session` prints with --json is the same in another form.
namespace sbx::protocol {

// ---- the session ----

/// `wall_time_ms` is null where there is no limit.
struct LimitFacts {
  std::optional<std::uint64_t> wall_time_ms;
  std::uint64_t cpu_time_ms = 0;
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t processes = 0;
  std::uint64_t file_size_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_files = 0;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::uint64_t passed_bytes = 0;
};
SBX_FIELDS(LimitFacts, wall_time_ms, cpu_time_ms, cpus, memory_bytes, processes, file_size_bytes,
           disk_bytes, disk_files, stdout_bytes, stderr_bytes, passed_bytes)

/// How many files may be copied out, and how large.
struct OutputFacts {
  std::uint64_t max_bytes = 0;
  std::uint64_t max_files = 0;
  std::uint64_t max_depth = 0;
};
SBX_FIELDS(OutputFacts, max_bytes, max_files, max_depth)

/// Answers info, extend and the start.
struct SessionFacts {
  std::string name;
  std::string id;
  pid_t pid = 0;
  std::string sbx;  ///< the version
  PolicyFacts policy;
  std::int64_t started = 0;  ///< seconds since 1970
  std::uint64_t calls_running = 0;
  std::uint64_t contexts = 0;
  std::string directory;
  std::string started_in;  ///< the caller's directory then
  std::string workspace;
  bool follows_caller = false;  ///< the caller's directory is part of the session
  LimitFacts limits;
  std::int64_t expires = 0;
  std::int64_t idle_ms = 0;
  OutputFacts outputs;
  std::vector<std::string> policy_files;
  std::vector<std::string> notes;
  std::vector<Degraded> degraded;
  std::vector<std::string> published;  ///< ADDRESS:PORT:INSIDE, of network.publish
};
SBX_FIELDS(SessionFacts, name, id, pid, sbx, policy, started, calls_running, contexts, directory,
           started_in, workspace, follows_caller, limits, expires, idle_ms, outputs, policy_files,
           notes, degraded, published)
SBX_EXACT(SessionFacts, directory, started_in)

/// What `sbx session list` prints.
struct SessionList {
  std::vector<SessionFacts> sessions;
};
SBX_FIELDS(SessionList, sessions)

struct UseFacts {
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_limit_bytes = 0;
  std::uint64_t processes = 0;
  std::uint64_t processes_limit = 0;
  std::uint64_t cpu_ms = 0;
  std::vector<NetworkUse> network;
  std::vector<NetworkFailure> network_failed;
};
SBX_FIELDS(UseFacts, memory_bytes, memory_limit_bytes, disk_bytes, disk_limit_bytes, processes,
           processes_limit, cpu_ms, network, network_failed)

/// Answers stats.
struct StatsAnswer {
  SessionFacts session;
  UseFacts use;
};
SBX_FIELDS(StatsAnswer, session, use)

/// Answers policy: TOML.
struct PolicyAnswer {
  std::string text;
};
SBX_FIELDS(PolicyAnswer, text)

/// Answers stop, kill, send, restart and close-context.
struct DoneAnswer {
  bool done = true;
};
SBX_FIELDS(DoneAnswer, done)

// ---- calls ----

enum class CallState : std::uint8_t { running, ended };
[[nodiscard]] constexpr const char* name_of(CallState state) {
  switch (state) {
    case CallState::running:
      return "running";
    case CallState::ended:
      return "ended";
  }
  return "";
}

struct CallFacts {
  std::uint64_t call = 0;
  bool background = false;
  CallState state = CallState::running;
  std::string command;  ///< for people, one line
  std::int64_t since = 0;
  std::optional<pid_t> pid;
  std::optional<int> exit_status;
  std::uint64_t wall_ms = 0;
  IfAny<std::uint64_t> stdout_bytes;  ///< only a background call's
  IfAny<std::uint64_t> stderr_bytes;
};
SBX_FIELDS(CallFacts, call, background, state, command, since, pid, exit_status, wall_ms,
           stdout_bytes, stderr_bytes)

struct CallsAnswer {
  std::vector<CallFacts> calls;
};
SBX_FIELDS(CallsAnswer, calls)

/// From here on a call's client may send SignalMessage. A background call has no other answer.
struct CallBegun {
  std::uint64_t call = 0;
};
SBX_FIELDS(CallBegun, call)

/// The last word to a call's client; answers wait.
struct CallEnded {
  int status = 0;             ///< as of `sbx run`
  IfAny<std::string> record;  ///< sbx.run/1, where it was asked for
  IfAny<std::string> said;    ///< lines for a person, about how it ended
};
SBX_FIELDS(CallEnded, status, record, said)

struct LogAnswer {
  std::uint64_t out = 0;  ///< bytes that were written so far
  std::uint64_t err = 0;
  bool ended = false;  ///< nothing more comes
  std::string out_text;
  std::string err_text;
};
SBX_FIELDS(LogAnswer, out, err, ended, out_text, err_text)

/// From here on a sender may write: the packet brings the socket.
struct InputTurn {
  std::uint64_t call = 0;
};
SBX_FIELDS(InputTurn, call)

// ---- contexts and cells ----

enum class ContextState : std::uint8_t { lost, starting, running, idle };
[[nodiscard]] constexpr const char* name_of(ContextState state) {
  switch (state) {
    case ContextState::lost:
      return "lost";
    case ContextState::starting:
      return "starting";
    case ContextState::running:
      return "running";
    case ContextState::idle:
      return "idle";
  }
  return "";
}

struct ContextFacts {
  std::string context;
  std::string language;
  ContextState state = ContextState::lost;
  std::uint64_t cells = 0;
  std::uint64_t waiting = 0;
  std::int64_t since = 0;
  std::optional<std::uint64_t> call;
  std::string directory;  ///< where it begins, as it was named; empty: the session's
};
SBX_FIELDS(ContextFacts, context, language, state, cells, waiting, since, call, directory)
SBX_EXACT(ContextFacts, directory)

struct ContextsAnswer {
  std::vector<ContextFacts> contexts;
};
SBX_FIELDS(ContextsAnswer, contexts)

struct InterruptAnswer {
  bool interrupted = false;  ///< a cell ran
};
SBX_FIELDS(InterruptAnswer, interrupted)

/// What the cell has shown goes.
struct CellClear {
  bool wait = false;  ///< once there is something new
};
SBX_FIELDS(CellClear, wait)

/// The result of this name, which comes later, belongs here.
struct CellPlace {
  std::string display_id;
};
SBX_FIELDS(CellPlace, display_id)

/// One of these, after so many bytes of the cell's streams.
struct CellEvent {
  static constexpr const char* kMark = "after_out";
  std::uint64_t after_out = 0;
  std::uint64_t after_err = 0;
  IfAny<CellResult> result;
  IfAny<CellClear> clear;
  IfAny<CellPlace> place;
  IfAny<CellError> failure;
};
SBX_FIELDS(CellEvent, after_out, after_err, result, clear, place, failure)

/// The last word to a cell's client.
struct CellEnded {
  CellRecord cell;
  int status = 0;                         ///< as of `sbx session eval`
  IfAny<std::vector<std::string>> notes;  ///< sentences for a person
  IfAny<ErrorFields> failure;             ///< the cell did not run
};
SBX_FIELDS(CellEnded, cell, status, notes, failure)

enum class Completeness : std::uint8_t { complete, incomplete, invalid };
[[nodiscard]] constexpr const char* name_of(Completeness status) {
  switch (status) {
    case Completeness::complete:
      return "complete";
    case Completeness::incomplete:
      return "incomplete";
    case Completeness::invalid:
      return "invalid";
  }
  return "";
}

/// Answers inspect, with what the interpreter knows, and open-context.
struct InspectAnswer {
  std::string language;
  std::string context;
  std::uint64_t count = 0;  ///< cells that it has run
  IfAny<Completeness> status;
  IfAny<std::string> indent;                ///< of the next line
  IfAny<std::string> replaces;              ///< the end of the code
  IfAny<std::vector<std::string>> matches;  ///< each begins with that
};
SBX_FIELDS(InspectAnswer, language, context, count, status, indent, replaces, matches)

// ---- the workspace ----

/// The process that reads the changes sends this: from here on it takes the client's signals. The
/// client asks the kernel which process that was.
struct ReaderBegun {
  bool reads = true;
};
SBX_FIELDS(ReaderBegun, reads)

/// What it says while it works. A client that does not read in time misses some.
struct ReaderEvent {
  static constexpr const char* kMark = "copied";
  std::uint64_t copied = 0;  ///< bytes of the work that goes on; 0: another piece of it begins
  IfAny<std::string> said;   ///< lines for a person
};
SBX_FIELDS(ReaderEvent, copied, said)

/// Something that is not part of what was asked for, and why.
struct LeftFacts {
  std::string path;
  std::string why;
};
SBX_FIELDS(LeftFacts, path, why)
SBX_EXACT(LeftFacts, path, why)

struct ChangesAnswer {
  std::vector<Change> changes;
  std::uint64_t left_out = 0;
  IfAny<std::string> text;             ///< for people, or a patch
  IfAny<std::vector<LeftFacts>> left;  ///< of a patch
};
SBX_FIELDS(ChangesAnswer, changes, left_out, text, left)
SBX_EXACT(ChangesAnswer, text)

struct SnapshotAnswer {
  std::optional<std::string> snapshot;  ///< the set; none: nothing was changed
  std::string directory;                ///< of the store
  std::string notes_directory;          ///< of that which notes what was applied
  std::string notes;                    ///< a set there
};
SBX_FIELDS(SnapshotAnswer, snapshot, directory, notes_directory, notes)

/// A set that was made of them. `sbx session` and records say it the same way.
struct KeptAnswer {
  std::string name;
  std::uint64_t changes = 0;
  std::uint64_t bytes = 0;
  IfAny<std::vector<LeftFacts>> lost;  ///< what it has not
};
SBX_FIELDS(KeptAnswer, name, changes, bytes, lost)

/// What became of changes that were applied.
struct AppliedFacts {
  std::vector<Change> done;
  std::vector<LeftFacts> conflicts;
  std::vector<LeftFacts> left;
  std::vector<LeftFacts> hazards;  ///< applied, and worth a look
};
SBX_FIELDS(AppliedFacts, done, conflicts, left, hazards)

/// Answers keep and bring-out.
struct BroughtOutAnswer {
  std::vector<Change> changes;
  IfAny<std::uint64_t> changes_left_out;
  IfAny<KeptAnswer> kept;
  bool incomplete = false;
  bool failures = false;  ///< files that could not be written
  int signal = 0;
};
SBX_FIELDS(BroughtOutAnswer, changes, changes_left_out, kept, incomplete, failures, signal)

// ---- what a client says later ----

/// The client of a call or a reader sends this: a signal, as if the work had got it itself.
struct SignalMessage {
  int signal = 0;
};
SBX_FIELDS(SignalMessage, signal)

/// A sender sends this when it has written all, or can write no more.
struct InputWritten {
  bool end = false;      ///< nothing comes after it
  bool refused = false;  ///< the rest was not taken: nobody reads it
};
SBX_FIELDS(InputWritten, end, refused)

/// A cell's client sends this to end the cell; a second one ends its context.
struct CancelMessage {
  int cancel = 0;
};
SBX_FIELDS(CancelMessage, cancel)

/// Reads an answer. Errors: that of the session, internal "bad-message".
template <HasFields Answer>
[[nodiscard]] Result<Answer> answer_from(Json body) {
  if (const auto error = body.find("error"); error != body.end()) return fail(error_from(*error));
  auto answer = read_fields<Answer>(std::move(body), {.subject = "the session's answer"});
  if (!answer) answer.error().hint = kOtherVersion;
  return answer;
}

}  // namespace sbx::protocol
