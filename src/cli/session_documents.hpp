#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "protocol/answers.hpp"
#include "transfer/unpack.hpp"

/// What commands of sessions print with --json, schema "sbx.session/1", where that is not an answer
/// of the session's own (protocol/answers.hpp).
namespace sbx::transfer {

SBX_FIELDS(Brought, path, type, bytes, replaced)
SBX_EXACT(Brought, path)

}  // namespace sbx::transfer

namespace sbx::cli {

struct StatsDocument {
  Flat<protocol::SessionFacts> session;
  Flat<protocol::UseFacts> use;
};
SBX_FIELDS(StatsDocument, session, use)

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
  std::vector<Change> changes;
};
SBX_FIELDS(LostChanges, session, changes)

/// With --keep, the answer of the session stands beside it.
struct StoppedDocument {
  std::vector<std::string> stopped;  ///< sessions
  std::vector<LostChanges> lost;
};
SBX_FIELDS(StoppedDocument, stopped, lost)

struct LogDocument {
  std::uint64_t call = 0;
  bool ended = false;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::string stdout_;
  std::string stderr_;
};
SBX_FIELDS(LogDocument, call, ended, stdout_bytes, stderr_bytes, stdout_, stderr_)
SBX_EXACT(LogDocument, stdout_, stderr_)

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
  std::optional<protocol::AppliedFacts> applied;  ///< none: there was nothing to apply
  bool incomplete = false;
  IfAny<bool> failures;
  IfAny<int> signal;
};
SBX_FIELDS(AppliedDocument, applied, incomplete, failures, signal)

// ---- files ----

/// Something that was not copied or listed.
struct LeftFile {
  Flat<protocol::LeftFacts> left;
  IfAny<Obstacle> kind;  ///< what stood in the way, where that is known
  IfAny<Side> side;      ///< beside it: where
};
SBX_FIELDS(LeftFile, left, kind, side)

struct PutDocument {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<transfer::Brought> written;  ///< the first 10,000
  std::vector<LeftFile> left;
  std::uint64_t left_out = 0;  ///< more that were left, without their names
};
SBX_FIELDS(PutDocument, files, bytes, written, left, left_out)

struct GetDocument {
  std::vector<transfer::Brought> files;
  std::vector<LeftFile> left;
  std::uint64_t left_out = 0;
};
SBX_FIELDS(GetDocument, files, left, left_out)

/// What there is to know about a name in the sandbox.
struct NameFacts {
  FileType type{};
  std::uint64_t bytes = 0;
  std::string mode;  ///< octal, four digits
  std::string owner;
  std::string group;
  std::int64_t modified = 0;  ///< seconds since 1970
  IfAny<std::string> target;  ///< of a link
};
SBX_FIELDS(NameFacts, type, bytes, mode, owner, group, modified, target)
SBX_EXACT(NameFacts, target)

struct EntryFacts {
  std::string name;
  Flat<NameFacts> facts;
};
SBX_FIELDS(EntryFacts, name, facts)
SBX_EXACT(EntryFacts, name)

struct ListingDocument {
  std::string path;
  std::vector<EntryFacts> entries;
  std::vector<LeftFile> left;
  bool is_cut = false;  ///< there are more entries
};
SBX_FIELDS(ListingDocument, path, entries, left, is_cut)
SBX_EXACT(ListingDocument, path)

struct StatDocument {
  std::string path;
  Flat<NameFacts> facts;
};
SBX_FIELDS(StatDocument, path, facts)
SBX_EXACT(StatDocument, path)

/// Of what mkdir made, rm removed, or mv moved.
struct PathDocument {
  std::string path;
};
SBX_FIELDS(PathDocument, path)
SBX_EXACT(PathDocument, path)

}  // namespace sbx::cli
