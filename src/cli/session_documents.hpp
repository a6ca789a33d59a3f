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
