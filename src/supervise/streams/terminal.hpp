#pragma once

#include <termios.h>

#include <optional>

namespace sbx::supervise {

/// The caller's terminal in raw mode, restored by the destructor. Nothing happens when `fd` is
/// none.
class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() { restore(); }

  [[nodiscard]] bool is_terminal() const { return before_.has_value(); }
  void make_raw() const;
  void restore() const;
  /// Gives the pty whose master is `master` the size of the caller's window.
  void copy_size_to(int master) const;

 private:
  int fd_;
  std::optional<termios> before_;
};

}  // namespace sbx::supervise
