#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"

/// The sessions that live, as their users find them. What dead ones left is removed.
namespace sbx::session {

/// A connection to a live session. Errors: usage "no-such-session" (with the most similar name),
/// "session-twice", host.
[[nodiscard]] Result<UniqueFd> connect_to(const host::Host& host, const std::string& name);

/// The same in one of the directories that hold those of sessions; invalid where none of that name
/// lives there. Errors: host, of one that lives.
[[nodiscard]] Result<UniqueFd> connect_in(int parent, const std::string& name);

struct LiveSession {
  std::string name;
  std::shared_ptr<const UniqueFd> directory;  ///< in which its directory is
};
/// Those that live, by name, wherever they are; what dead ones left is removed.
[[nodiscard]] std::vector<LiveSession> live_sessions(const host::Host& host);
/// Errors: host "session-gone" where it has just ended.
[[nodiscard]] Result<UniqueFd> connect_to(const LiveSession& session);
/// The line for a person who sees none.
[[nodiscard]] std::string no_sessions(const host::Host& host);

}  // namespace sbx::session
