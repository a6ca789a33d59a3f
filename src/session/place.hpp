#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"

/// Where sessions are: a directory for each, named as the session, with its socket and its lock. The session's process
/// holds the lock as long as it lives; the kernel releases it however that ends.
namespace sbx::session {

/// [a-z0-9][a-z0-9-]{0,62}. Errors: usage "bad-session-name".
[[nodiscard]] Status check_name(std::string_view name);
/// A name that no session has: "s-" and 8 hexadecimal digits of getrandom(2).
[[nodiscard]] std::string make_name();

/// A session's directory, made and locked by its process. Its destructor removes it.
class Place {
 public:
  /// Removes what a dead session of this name left. Errors: usage "session-exists" (it lives), host.
  [[nodiscard]] static Result<Place> make(const host::Host& host, const std::string& name);
  Place(Place&&) noexcept = default;
  Place& operator=(Place&&) noexcept = default;
  ~Place();

  /// A listening SOCK_SEQPACKET socket in it. Errors: host.
  [[nodiscard]] Result<UniqueFd> listen() const;
  [[nodiscard]] const std::string& name() const { return name_; }
  /// In a fork of the session's process: the lock must not outlive the session, nor the directory end with the fork.
  void forget_lock() {
    lock_.reset();
    folder_.reset();
  }

 private:
  Place(std::string name, UniqueFd parent, UniqueFd folder, UniqueFd lock)
      : name_(std::move(name)),
        parent_(std::move(parent)),
        folder_(std::move(folder)),
        lock_(std::move(lock)) {}
  std::string name_;
  UniqueFd parent_;
  UniqueFd folder_;
  UniqueFd lock_;
};

/// A connection to a live session. Errors: usage "no-such-session" (with the most similar name), host.
[[nodiscard]] Result<UniqueFd> connect_to(const host::Host& host, const std::string& name);

/// Names of live sessions, sorted; what dead ones left is removed. Errors: host.
[[nodiscard]] Result<std::vector<std::string>> live_sessions(const host::Host& host);

/// Whether the other end of a connection may use the session, or be one: the same user or root, and no process of a sandbox, which
/// has the same uid on the host but lives in a PID namespace below.
[[nodiscard]] bool may_use(int connection);

}  // namespace sbx::session
