#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sbx::supervise {

/// The name (comm) of a thread, as the supervisor's PID namespace numbers it. Empty when it ended.
[[nodiscard]] std::string process_name(std::uint32_t thread);

/// The memory of a process that waits in a notified system call. What is read there may change
/// before the kernel reads it again: it is good for naming what was tried, never for a decision.
class CallerMemory {
 public:
  /// `listener` and `id` are those of the notification; the listener is borrowed.
  CallerMemory(int listener, std::uint64_t id, std::uint32_t thread)
      : listener_(listener), id_(id), thread_(thread) {}

  /// As the supervisor's PID namespace numbers it; 0: not visible from there.
  [[nodiscard]] std::uint32_t thread() const { return thread_; }
  /// False when not all of it could be read, or the call is over: then another process may have got
  /// the number meanwhile.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const;
  /// A text that ends with NUL, at most `limit` bytes of it. Nothing as with read().
  [[nodiscard]] std::optional<std::string> text(std::uint64_t address, std::size_t limit) const;
  /// SO_PROTOCOL of the caller's socket `fd`; 0 where it can't be told.
  [[nodiscard]] int socket_protocol(int fd) const;
  /// As supervise::process_name().
  [[nodiscard]] std::string process_name() const;

 private:
  [[nodiscard]] std::size_t copy(std::uint64_t address, std::span<std::byte> into) const;
  [[nodiscard]] bool still_waits() const;

  int listener_;
  std::uint64_t id_;
  std::uint32_t thread_;
};

}  // namespace sbx::supervise
