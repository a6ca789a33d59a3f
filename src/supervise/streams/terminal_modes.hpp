#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sbx::supervise {

/// Private modes that a program leaves a terminal in: reports of the mouse and of focus, the
/// alternate screen, bracketed paste, a hidden cursor. A shell doesn't undo them. It is fed what
/// reaches the terminal, which EscapeFilter has made well-formed, in any split.
class TerminalModes {
 public:
  void feed(std::string_view output);
  /// What undoes those that are set; from here on none is.
  [[nodiscard]] std::string resets();

 private:
  enum class State : std::uint8_t { ground, escape, bracket, parameters };

  void change(bool set);

  State state_ = State::ground;
  std::string parameters_;
  std::uint32_t set_ = 0;  ///< bits, in the order of the table
};

}  // namespace sbx::supervise
