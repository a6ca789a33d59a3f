#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sbx::supervise {

/// The name (comm) of a thread, numbered as in the supervisor's PID namespace. Empty if it has
/// ended.
[[nodiscard]] std::string process_name(std::uint32_t thread);

/// Reads the memory of a process that waits in a notified system call. The memory may change before
/// the kernel reads it again, so it is good for reports, and for what is done in the call's place,
/// never for a call that continues. Copies stand for the same call.
class CallerMemory {
 public:
  /// `listener` and `id` are those of the notification; the listener is borrowed.
  CallerMemory(int listener, std::uint64_t id, std::uint32_t thread)
      : listener_(listener), id_(id), thread_(thread) {}

  /// Numbered as in the supervisor's PID namespace; 0: not visible there.
  [[nodiscard]] std::uint32_t thread() const { return thread_; }
  /// False if not all of it could be read, or if the call is over: then another process may have
  /// the number.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const;
  /// A NUL-terminated text of at most `limit` bytes. Empty if it can't be read, as with read().
  [[nodiscard]] std::optional<std::string> text(std::uint64_t address, std::size_t limit) const;
  /// SO_PROTOCOL of the caller's socket `fd`; 0 if unknown.
  [[nodiscard]] int socket_protocol(int fd) const;
  /// False if the call is over: then another process may have the thread's number.
  [[nodiscard]] bool still_waits() const;
  /// As supervise::process_name().
  [[nodiscard]] std::string process_name() const;

  /// Ends the call with this errno, or with success (0). No-op where the call is over.
  void finish(int error) const;
  /// Ends the call with a descriptor of the caller's own for the file `fd`, in one step: its
  /// number is the call's answer. Returns the errno where that fails and the call still waits
  /// (EMFILE: the caller can have no more), else 0.
  [[nodiscard]] int give(int fd, bool close_on_exec) const;

 private:
  [[nodiscard]] std::size_t copy(std::uint64_t address, std::span<std::byte> into) const;

  int listener_;
  std::uint64_t id_;
  std::uint32_t thread_;
};

}  // namespace sbx::supervise
