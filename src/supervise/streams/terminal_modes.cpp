#include "supervise/streams/terminal_modes.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace sbx::supervise {
namespace {

struct Mode {
  int number;
  bool usual;  ///< set in a terminal as a shell has it
};
/// xterm's control sequences, "DEC Private Mode Set".
constexpr std::array kModes{
    Mode{1000, false}, Mode{1002, false}, Mode{1003, false}, Mode{1006, false}, Mode{1004, false},
    Mode{1049, false}, Mode{1047, false}, Mode{47, false},   Mode{2004, false}, Mode{25, true}};

}  // namespace

void TerminalModes::feed(std::string_view output) {
  constexpr std::size_t kLongest = 64;
  for (const char letter : output) {
    switch (state_) {
      case State::ground:
        if (letter == '\033') state_ = State::escape;
        break;
      case State::escape:
        state_ = letter == '[' ? State::bracket : State::ground;
        break;
      case State::bracket:
        state_ = letter == '?' ? State::parameters : State::ground;
        parameters_.clear();
        break;
      case State::parameters:
        if (((letter >= '0' && letter <= '9') || letter == ';') && parameters_.size() < kLongest) {
          parameters_ += letter;
          break;
        }
        if (letter == 'h' || letter == 'l') change(letter == 'h');
        state_ = State::ground;
        break;
    }
  }
}

void TerminalModes::change(bool set) {
  const char* at = parameters_.data();
  const char* const end = at + parameters_.size();
  while (at < end) {
    int number = -1;
    const auto [next, error] = std::from_chars(at, end, number);
    for (std::size_t i = 0; error == std::errc{} && i < kModes.size(); ++i) {
      if (kModes[i].number != number) continue;
      const std::uint32_t bit = 1U << i;
      set_ = set == kModes[i].usual ? set_ & ~bit : set_ | bit;
    }
    at = next + 1;
  }
}

std::string TerminalModes::resets() {
  std::string text;
  for (std::size_t i = 0; i < kModes.size(); ++i)
    if ((set_ >> i & 1U) != 0)
      text += "\033[?" + std::to_string(kModes[i].number) + (kModes[i].usual ? "h" : "l");
  set_ = 0;
  return text;
}

}  // namespace sbx::supervise
