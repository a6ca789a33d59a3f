#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"

/// Where sessions are: a directory for each, named as the session, with its socket and its lock.
/// The session's process holds the lock as long as it lives; the kernel releases it however that
/// ends.
namespace sbx::session {

/// A session's directory, made and locked by its process. Its destructor removes it.
class SessionDirectory {
 public:
  /// Removes what a dead session of this name left, and waits while one starts. Errors: usage
  /// "session-exists" (it lives), host.
  [[nodiscard]] static Result<SessionDirectory> make(const host::Host& host,
                                                     const std::string& name);
  SessionDirectory(SessionDirectory&&) noexcept = default;
  SessionDirectory& operator=(SessionDirectory&&) noexcept = default;
  ~SessionDirectory();

  /// Lets those go on who wait for the end of the start.
  void end_start() const;
  /// A listening SOCK_SEQPACKET socket in it. Errors: host.
  [[nodiscard]] Result<UniqueFd> listen() const;
  /// Readable when something has been removed from it; invalid where the kernel has no room for
  /// that.
  [[nodiscard]] UniqueFd watch_removal() const;
  /// False where commands can't find it any more.
  [[nodiscard]] bool is_there() const;
  [[nodiscard]] const std::string& name() const { return name_; }
  /// That of all sessions.
  [[nodiscard]] int parent() const { return parent_.get(); }
  /// In a fork of the session's process: the lock must not outlive the session, nor the directory
  /// end with the fork.
  void forget_lock() {
    lock_.reset();
    directory_.reset();
  }

 private:
  SessionDirectory(std::string name, UniqueFd parent, UniqueFd directory, UniqueFd lock)
      : name_(std::move(name)),
        parent_(std::move(parent)),
        directory_(std::move(directory)),
        lock_(std::move(lock)) {}
  std::string name_;
  UniqueFd parent_;
  UniqueFd directory_;
  UniqueFd lock_;
};

}  // namespace sbx::session
