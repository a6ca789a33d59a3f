#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/obstacle.hpp"
#include "protocol/entries.hpp"

/// The record of a cell, schema "sbx.cell/1": sbx-record(5) says what its members mean.
namespace sbx::protocol {

// ---- what records of runs have too ----

struct PolicyFacts {
  std::string name;
  std::string source;
  std::string sha256;
};
SBX_FIELDS(PolicyFacts, name, source, sha256)
SBX_EXACT(PolicyFacts, name, source)

enum class Encoding : std::uint8_t { utf8, base64 };
[[nodiscard]] constexpr const char* name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::utf8:
      return "utf-8";
    case Encoding::base64:
      return "base64";
  }
  return "";
}

struct StreamFacts {
  std::optional<std::string> text;  ///< none: it was not captured
  std::uint64_t bytes = 0;
  bool truncated = false;
  Encoding encoding{};
  std::uint64_t head_bytes = 0;
  std::uint64_t tail_bytes = 0;
  IfAny<bool> joined;
};
SBX_FIELDS(StreamFacts, text, bytes, truncated, encoding, head_bytes, tail_bytes, joined)

struct WriteErrorFacts {
  std::string stream;
  std::string error;
  int errno_ = 0;
};
SBX_FIELDS(WriteErrorFacts, stream, error, errno_)

/// With the rule that set the limit; empty: none did.
struct LimitMetFacts : LimitMet {
  std::string rule;
};
template <class Members>
void describe(Members& members, LimitMetFacts& limit) {
  lib::describe(members, static_cast<LimitMet&>(limit));
  members.text_or_null("rule", limit.rule);
}

// ---- what the interpreter says ----

/// A value by MIME type: text, base64 where the type is binary, or JSON where it is JSON.
using Forms = AtMost<ByName<Json, 200>, 100>;

struct LeftOutForm {
  std::string mime;
  std::uint64_t bytes = 0;
};
SBX_FIELDS(LeftOutForm, mime, bytes)

/// A value that a cell shows.
struct CellResult {
  bool main = false;  ///< the cell's own value
  Forms data;
  std::optional<ByName<std::string>> file;  ///< where a client has saved a form
  IfAny<std::vector<LeftOutForm>> left_out;
  IfAny<std::string> display_id;
  IfAny<bool> update;  ///< takes the place of what has the same display_id
};
SBX_FIELDS(CellResult, main, data, file, left_out, display_id, update)

struct CellError {
  std::string name;
  std::string value;
  std::string traceback;
  std::optional<std::uint64_t> line;
  IfAny<Obstacle> kind;  ///< the cell's directory could not be entered
};
SBX_FIELDS(CellError, name, value, traceback, line, kind)

struct InterpreterAnswer {
  bool ok = false;
  std::vector<CellResult> results;
  std::optional<CellError> error;
  std::optional<std::int64_t> exit;
  std::uint64_t count = 0;
  IfAny<std::uint64_t> left_out_more;
};
SBX_FIELDS(InterpreterAnswer, ok, results, error, exit, count, left_out_more)

// ---- the record ----

/// How a cell ended. Who supervises its context decides that, never its interpreter.
enum class CellStatus : std::uint8_t {
  answered,     ///< the interpreter said so, whatever it says
  over_budget,  ///< with a budget
  interrupted,  ///< somebody else asked for that
  cancelled,    ///< by its own client, or with its context
  died,         ///< the interpreter ended, with a code or a signal where they are known
  lost,         ///< the context was killed from outside, so that nobody knows
  denied,       ///< with syscalls.denied = "kill"
  setup_failed,
};
[[nodiscard]] constexpr const char* name_of(CellStatus status) {
  switch (status) {
    case CellStatus::answered:
      return "answered";
    case CellStatus::over_budget:
      return "over-budget";
    case CellStatus::interrupted:
      return "interrupted";
    case CellStatus::cancelled:
      return "cancelled";
    case CellStatus::died:
      return "died";
    case CellStatus::lost:
      return "lost";
    case CellStatus::denied:
      return "denied";
    case CellStatus::setup_failed:
      return "setup-failed";
  }
  return "";
}

/// Of what a context has remembered.
enum class CellState : std::uint8_t {
  fresh,  ///< "new": the cell is the first of its context
  kept,
  lost,  ///< it ended with this cell, or had ended before it
};
[[nodiscard]] constexpr const char* name_of(CellState state) {
  switch (state) {
    case CellState::fresh:
      return "new";
    case CellState::kept:
      return "kept";
    case CellState::lost:
      return "lost";
  }
  return "";
}

struct CellNames {
  std::string name;  ///< of the session
  std::string id;
  std::string context;
  std::string language;
  std::optional<std::uint64_t> call;
};
SBX_FIELDS(CellNames, name, id, context, language, call)

struct CellOutcome {
  CellStatus status{};
  std::optional<std::string> reason;
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool success = false;
  std::string detail;
  IfAny<std::string> code;
  IfAny<std::string> rule;
  IfAny<std::string> hint;
  IfAny<Obstacle> kind;
  IfAny<Side> side;
};
SBX_FIELDS(CellOutcome, status, reason, exit_code, signal, success, detail, code, rule, hint, kind,
           side)

struct CellNetwork {
  std::vector<NetworkFailure> failed;
};
SBX_FIELDS(CellNetwork, failed)

struct CellUsage {
  std::uint64_t wall_ms = 0;
  std::uint64_t cpu_ms = 0;
};
SBX_FIELDS(CellUsage, wall_ms, cpu_ms)

struct CellRecord {
  std::string schema = "sbx.cell/1";
  std::string sbx;  ///< the version
  std::string id;
  CellNames session;
  std::optional<PolicyFacts> policy;
  CellOutcome outcome;
  CellState state{};
  StreamFacts stdout_;
  StreamFacts stderr_;
  std::optional<InterpreterAnswer> answer;
  std::vector<Denial> denials;
  std::vector<LimitMetFacts> limits_met;
  CellNetwork network;
  std::uint64_t late_bytes = 0;
  CellUsage usage;
  std::vector<Degraded> degraded;
  IfAny<std::vector<Hint>> hints;
  IfAny<WriteErrorFacts> write_error;
  IfAny<std::string> lost_because;
};
SBX_FIELDS(CellRecord, schema, sbx, id, session, policy, outcome, state, stdout_, stderr_, answer,
           denials, limits_met, network, late_bytes, usage, degraded, hints, write_error,
           lost_because)

}  // namespace sbx::protocol
