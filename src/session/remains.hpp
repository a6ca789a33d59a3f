#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "host/host.hpp"

/// What a session that nobody stopped has left to say: a small file beside the directories of the
/// sessions, which the next command that names the session reads.
namespace sbx::session {

struct Remains {
  std::int64_t ended = 0;          ///< seconds since 1970
  std::string cause;               ///< "after 30m without use"
  std::string set;                 ///< in which its changes are kept; empty: in none
  std::uint64_t kept = 0;          ///< how many those are
  std::uint64_t lost = 0;          ///< files that are nowhere any more
  std::vector<std::string> paths;  ///< the first of the lost ones
  std::string cure;                ///< what would have kept them, or why they could not be kept
};
SBX_FIELDS(Remains, ended, cause, set, kept, lost, paths, cure)

/// Paths of Remains::paths.
inline constexpr std::size_t kLostNamed = 3;

/// Best effort. `directory`: that of all sessions.
void leave_remains(int directory, const std::string& name, const Remains& remains);
/// Where a session of that name begins, or a command has stopped it.
void drop_remains(int directory, const std::string& name);
/// Also those of others that nobody has asked for in a week.
void sweep_remains(int directory);
/// Reads what the session left that ended last under that name.
/// `kept` is 0 where somebody has dropped the set.
[[nodiscard]] std::optional<Remains> remains_of(const host::Host& host, const std::string& name);
/// In each directory of sessions: one of that name has begun in one of them.
void forget_remains(const host::Host& host, const std::string& name);

/// "the session "work" ended at 2026-01-31 12:00, after 30m without use".
[[nodiscard]] std::string ended_words(const std::string& name, const Remains& remains);
/// Where its changes are, or which are lost and what would have kept them.
[[nodiscard]] std::string remains_words(const Remains& remains);

}  // namespace sbx::session
