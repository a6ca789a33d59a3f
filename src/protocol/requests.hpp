#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "protocol/answers.hpp"
#include "protocol/program.hpp"

/// What a client asks a session for: one struct for each operation, whose packet has the
/// operation's name as "op". A new field is a line in its struct, and its name in SBX_FIELDS.
/// kDescriptors says which descriptors come with it. Its client hears Begun first, then any number
/// of Events, and Answer last; meanwhile it may send Later. sbx-packet(5) and its schema are made
/// from all of that.
namespace sbx::protocol {

/// A longer name is that of nothing; the session says which characters a name has.
using Name = AtMost<std::string, 4096>;

struct InfoRequest {
  using Answer = SessionFacts;
  static constexpr const char* kOp = "info";
  static constexpr const char* kMeaning = "asks what the session is";
};
SBX_NO_FIELDS(InfoRequest)

struct PolicyRequest {
  using Answer = PolicyAnswer;
  static constexpr const char* kOp = "policy";
  static constexpr const char* kMeaning = "asks for the session's policy, as TOML";
};
SBX_NO_FIELDS(PolicyRequest)

struct StatsRequest {
  using Answer = StatsAnswer;
  static constexpr const char* kOp = "stats";
  static constexpr const char* kMeaning = "asks what the session uses";
};
SBX_NO_FIELDS(StatsRequest)

struct StopRequest {
  using Answer = DoneAnswer;
  static constexpr const char* kOp = "stop";
  static constexpr const char* kMeaning =
      "ends the session; the answer comes once everything in it has ended";
};
SBX_NO_FIELDS(StopRequest)

struct ExtendRequest {
  using Answer = SessionFacts;
  static constexpr const char* kOp = "extend";
  static constexpr const char* kMeaning = "lets the session live for this long from now on";
  std::uint64_t milliseconds = 0;
};
SBX_FIELDS(ExtendRequest, milliseconds)

struct CallsRequest {
  using Answer = CallsAnswer;
  static constexpr const char* kOp = "calls";
  static constexpr const char* kMeaning =
      "lists the calls that run, and the last ones that have ended";
};
SBX_NO_FIELDS(CallsRequest)

struct LogsRequest {
  using Answer = LogAnswer;
  static constexpr const char* kOp = "logs";
  static constexpr const char* kMeaning =
      "asks what a background call wrote after these many bytes; a follower's answer comes when "
      "there is more, or when nothing more comes";
  std::uint64_t call = 0;
  bool follow = false;
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};
SBX_FIELDS(LogsRequest, call, follow, out, err)

struct WaitRequest {
  using Answer = CallEnded;
  static constexpr const char* kOp = "wait";
  static constexpr const char* kMeaning = "waits for the end of a call";
  std::uint64_t call = 0;
  bool record = false;  ///< the client wants it, which only a background call has
};
SBX_FIELDS(WaitRequest, call, record)

struct KillRequest {
  using Answer = DoneAnswer;
  static constexpr const char* kOp = "kill";
  static constexpr const char* kMeaning =
      "sends a call this signal; without one it cancels the call";
  std::uint64_t call = 0;
  std::optional<std::uint8_t> signal;
};
SBX_FIELDS(KillRequest, call, signal)

struct SendRequest {
  using Answer = DoneAnswer;
  using Begun = InputTurn;
  using Later = InputWritten;
  static constexpr const char* kOp = "send";
  static constexpr const char* kMeaning =
      "asks for the standard input of a background call that was left open; the first packet comes "
      "when no other sender has it, and with it a socket into which the client writes";
  std::uint64_t call = 0;
};
SBX_FIELDS(SendRequest, call)

struct ContextsRequest {
  using Answer = ContextsAnswer;
  static constexpr const char* kOp = "contexts";
  static constexpr const char* kMeaning = "lists the contexts";
};
SBX_NO_FIELDS(ContextsRequest)

struct InterruptRequest {
  using Answer = InterruptAnswer;
  static constexpr const char* kOp = "interrupt";
  static constexpr const char* kMeaning = "interrupts the cell that runs in a context";
  Name context;
};
SBX_FIELDS(InterruptRequest, context)

struct RestartRequest {
  using Answer = DoneAnswer;
  static constexpr const char* kOp = "restart";
  static constexpr const char* kMeaning = "ends a context; the answer comes when it has ended";
  Name context;
};
SBX_FIELDS(RestartRequest, context)

struct CloseContextRequest {
  using Answer = DoneAnswer;
  static constexpr const char* kOp = "close-context";
  static constexpr const char* kMeaning =
      "ends a context and forgets its name; the answer comes when it has ended";
  Name context;
};
SBX_FIELDS(CloseContextRequest, context)

// ---- work in the sandbox: it waits while changes are read ----

struct CallRequest {
  using Answer = CallEnded;
  using Begun = CallBegun;
  using Later = SignalMessage;
  static constexpr const char* kOp = "call";
  static constexpr const char* kMeaning = "runs a program";
  static constexpr const char* kDescriptors =
      "standard input, output and error; one for events, where they are wanted";
  Name id;  ///< of the record
  plan::RunRequest program;
  std::vector<policy::Override> overrides;  ///< these may only narrow the session's policy
  bool capture = false;                     ///< the record has what the program writes
  bool background = false;                  ///< the session keeps what it writes
  bool reads_stdin = false;  ///< in the background too, where standard input is else empty
  bool open_stdin = false;   ///< in the background: senders write what it reads
  bool silent = false;       ///< CallEnded says only what kept the program from running
  bool verbose = false;
  bool colors = false;  ///< of what it says
  bool record = false;  ///< it has that too
};
SBX_FIELDS(CallRequest, id, program, overrides, capture, background, reads_stdin, open_stdin,
           silent, verbose, colors, record)

struct FilesRequest {
  using Answer = CallEnded;
  using Begun = CallBegun;
  using Later = SignalMessage;
  static constexpr const char* kOp = "files";
  static constexpr const char* kMeaning =
      "runs sbx's own code inside, which copies or lists files over its standard streams";
  static constexpr const char* kDescriptors = "standard input, output and error";
  Name id;
  Name title;                      ///< for lists of calls
  std::vector<std::string> words;  ///< its arguments
};
SBX_FIELDS(FilesRequest, id, title, words)

struct EvalRequest {
  using Answer = CellEnded;
  using Event = CellEvent;
  using Later = CancelMessage;
  static constexpr const char* kOp = "eval";
  static constexpr const char* kMeaning =
      "runs a cell; its context is named by its language, its own name or both";
  static constexpr const char* kDescriptors = "standard output and error";
  Name id;
  Name language;
  Name context;
  std::string code;
  std::vector<policy::Override> overrides;
  bool capture = false;
  bool follow = false;  ///< the client hears of results while the cell runs
  /// The cell's own, gone after it: where it begins, and variables of the environment.
  std::string directory;
  std::vector<std::pair<std::string, std::string>> environment;
};
SBX_FIELDS(EvalRequest, id, language, context, code, overrides, capture, follow, directory,
           environment)

struct OpenContextRequest {
  using Answer = InspectAnswer;
  static constexpr const char* kOp = "open-context";
  static constexpr const char* kMeaning =
      "starts a context of a new name; the answer, which has the name, comes when its interpreter "
      "is there";
  static constexpr bool kWorks = true;
  Name language;
  std::string directory;  ///< where it begins, from the session's directory on; empty: there
};
SBX_FIELDS(OpenContextRequest, language, directory)

enum class Question : std::uint8_t { context, completeness, completion };
[[nodiscard]] constexpr const char* name_of(Question question) {
  switch (question) {
    case Question::context:
      return "context";  // only this is meant
    case Question::completeness:
      return "completeness";
    case Question::completion:
      return "completion";
  }
  return "";
}

struct InspectRequest {
  using Answer = InspectAnswer;
  static constexpr const char* kOp = "inspect";
  static constexpr const char* kMeaning = "asks about code that does not run";
  static constexpr bool kWorks = true;
  Name language;
  Name context;
  Question question = Question::context;
  std::string code;  ///< up to the cursor
};
SBX_FIELDS(InspectRequest, language, context, question, code)

enum class View : std::uint8_t { list, diff, patch, json };
[[nodiscard]] constexpr const char* name_of(View view) {
  switch (view) {
    case View::list:
      return "list";
    case View::diff:
      return "diff";
    case View::patch:
      return "patch";
    case View::json:
      return "json";
  }
  return "";
}

struct ChangesRequest {
  using Answer = ChangesAnswer;
  using Begun = ReaderBegun;
  static constexpr const char* kOp = "changes";
  static constexpr const char* kMeaning = "asks what changed in the workspace";
  static constexpr bool kWorks = true;
  View view = View::list;
  bool colors = false;       ///< of the text
  IfAny<std::string> below;  ///< a path of the workspace: only it, and what is below it
};
SBX_FIELDS(ChangesRequest, view, colors, below)

struct SnapshotRequest {
  using Answer = SnapshotAnswer;
  using Begun = ReaderBegun;
  using Event = ReaderEvent;
  static constexpr const char* kOp = "snapshot";
  static constexpr const char* kMeaning =
      "keeps the changes as a set that the client reads, applies and drops";
  static constexpr bool kWorks = true;
  bool silent = true;  ///< the client hears of no progress
};
SBX_FIELDS(SnapshotRequest, silent)

struct KeepRequest {
  using Answer = BroughtOutAnswer;
  using Begun = ReaderBegun;
  using Event = ReaderEvent;
  static constexpr const char* kOp = "keep";
  static constexpr const char* kMeaning = "keeps the changes as a set of this name";
  static constexpr bool kWorks = true;
  Name set;
  bool silent = false;  ///< the client hears only of what makes it wait
};
SBX_FIELDS(KeepRequest, set, silent)

struct BringOutRequest {
  using Answer = BroughtOutAnswer;
  using Begun = ReaderBegun;
  using Event = ReaderEvent;
  static constexpr const char* kOp = "bring-out";
  static constexpr const char* kMeaning =
      "copies files to a directory of the host, as at the end of a run";
  static constexpr bool kWorks = true;
  Name directory;
  std::vector<std::string> collect;  ///< patterns; none: the policy's
  bool silent = false;               ///< as of keep
};
SBX_FIELDS(BringOutRequest, directory, collect, silent)

using Request =
    std::variant<InfoRequest, PolicyRequest, StatsRequest, StopRequest, ExtendRequest, CallsRequest,
                 LogsRequest, WaitRequest, KillRequest, SendRequest, ContextsRequest,
                 InterruptRequest, RestartRequest, CloseContextRequest, CallRequest, FilesRequest,
                 EvalRequest, OpenContextRequest, InspectRequest, ChangesRequest, SnapshotRequest,
                 KeepRequest, BringOutRequest>;

/// Its client hears first that the work has begun.
template <class Asked>
concept Begins = requires { typename Asked::Begun; };

/// Its client hears of events meanwhile, each of which has the member kMark.
template <class Asked>
concept Tells = requires { Asked::Event::kMark; };

/// It waits while changes are read.
template <class Asked>
concept Works = requires { Asked::kDescriptors; } || requires { Asked::kWorks; };

template <class Value>
concept IsRequest = HasFields<Value> && requires { Value::kOp; };

/// The body of its packet.
template <IsRequest Asked>
[[nodiscard]] Json body_of(const Asked& request) {
  Json body{{"op", Asked::kOp}};
  body.update(write_fields(request));
  return body;
}

template <IsRequest Asked>
[[nodiscard]] Status send(int socket, const Asked& request, std::span<const int> fds = {}) {
  return send(socket, body_of(request), fds);
}

/// Errors: usage "bad-message", for another operation, or naming the member that is wrong.
[[nodiscard]] Result<Request> request_from(Json body);

}  // namespace sbx::protocol
