#pragma once

#include <termios.h>

#include <optional>

namespace sbx::supervise {

/// Puts the caller's terminal into raw mode; the destructor restores it. Does nothing if `fd` is no
/// terminal.
class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() { restore(); }

  [[nodiscard]] bool is_terminal() const { return before_.has_value(); }
  void make_raw() const;
  void restore() const;
  /// Copies the size of the caller's window to the pty of `master`.
  void copy_size_to(int master) const;

 private:
  int fd_;
  std::optional<termios> before_;
};

}  // namespace sbx::supervise
