#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/json.hpp"

/// What commands of sessions print with --json, schema "sbx.session/1", where that is not an answer
/// of the session's own (protocol/answers.hpp).
namespace sbx::cli {

struct BegunDocument {
  std::string session;
  std::uint64_t call = 0;
};
SBX_FIELDS(BegunDocument, session, call)

struct SignalDocument {
  std::uint64_t call = 0;
  int signal = 0;
};
SBX_FIELDS(SignalDocument, call, signal)

struct SentDocument {
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  bool ended = false;
};
SBX_FIELDS(SentDocument, call, bytes, ended)

/// What was listed of a session's changes, which ended with it.
struct LostChanges {
  std::string session;
  Json changes = Json::array();  ///< as in sbx.run/1
};
SBX_FIELDS(LostChanges, session, changes)

/// With --keep, the answer of the session stands beside it.
struct StoppedDocument {
  std::vector<std::string> stopped;  ///< sessions
  std::vector<LostChanges> lost;
};
SBX_FIELDS(StoppedDocument, stopped, lost)

/// Beside it stand two texts, "stdout" and "stderr": names that no member can have, as they are
/// macros.
struct LogDocument {
  std::uint64_t call = 0;
  bool ended = false;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
};
SBX_FIELDS(LogDocument, call, ended, stdout_bytes, stderr_bytes)

struct InterruptedDocument {
  std::vector<std::string> interrupted;  ///< contexts
};
SBX_FIELDS(InterruptedDocument, interrupted)

struct RestartedDocument {
  std::vector<std::string> restarted;  ///< contexts
};
SBX_FIELDS(RestartedDocument, restarted)

struct ContextDocument {
  std::string context;
  std::string language;
};
SBX_FIELDS(ContextDocument, context, language)

struct ClosedDocument {
  std::string closed;  ///< the context
};
SBX_FIELDS(ClosedDocument, closed)

struct AppliedDocument {
  Json applied;  ///< as in sbx.run/1; null: there was nothing to apply
  bool incomplete = false;
  IfAny<bool> failures;
  IfAny<int> signal;
};
SBX_FIELDS(AppliedDocument, applied, incomplete, failures, signal)

}  // namespace sbx::cli
