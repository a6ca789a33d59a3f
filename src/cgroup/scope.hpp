#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cgroup/hierarchies.hpp"

/// A systemd scope with a delegated group, made by the caller's own manager: for a user at a
/// terminal, because the group of a login session is not delegated.
namespace sbx::cgroup {

/// Whether the group `path` (as in /proc/self/cgroup) is a login session of `uid` or an application
/// of its manager. Nothing else may be left for a scope: a job's or a container's group holds what
/// was granted to it.
[[nodiscard]] bool is_login(std::string_view path, uid_t uid);

/// Whether the group, or one above it that belongs to the user, has a limit of memory or CPU: then
/// sbx stays in it, because leaving it would evade the limit.
[[nodiscard]] bool is_limited(const GroupPath& own, uid_t uid);

/// A question to the manager, and the wait for its answer: org.freedesktop.systemd1(5),
/// StartTransientUnit. The unit ends with this process, and systemd removes what is in it.
class ScopeRequest {
 public:
  ScopeRequest();
  ScopeRequest(ScopeRequest&&) noexcept;
  ScopeRequest& operator=(ScopeRequest&&) noexcept;
  ~ScopeRequest();

  /// Sends it; nothing is sent unless /run/user/UID/bus is a socket of this user's.
  [[nodiscard]] static ScopeRequest send(uid_t uid);
  /// Waits, at most half a second, until this process is in the scope. Otherwise: why not.
  [[nodiscard]] Status finish();

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
  std::string unit_;
  std::string problem_;
};

}  // namespace sbx::cgroup
