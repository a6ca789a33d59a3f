#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sbx::supervise {

enum class EscapePolicy : unsigned char {
  visible,  ///< only SGR (colours), \r, \n and \t reach the terminal; the rest is shown as text
  /// Cursor and mode sequences pass; sequences that set titles, read back or query do not.
  interactive,
};

/// Makes a program's output safe for a terminal. Works for any split of the bytes: an unfinished
/// sequence is held back until it is complete, at most 4 KiB. Control characters are also
/// recognised in their UTF-8 form (U+009B is CSI to xterm).
class EscapeFilter {
 public:
  explicit EscapeFilter(EscapePolicy policy) : policy_(policy) {}

  void feed(std::string_view input, std::string& output);
  /// At the end of the output: shows what was held back.
  void finish(std::string& output);

 private:
  enum class State : unsigned char {
    ground,
    utf8,
    escape,
    escape_intermediate,
    csi,
    string,
    string_escape,
  };

  void step(unsigned char byte, std::string& output);
  void ground(unsigned char byte, std::string& output);
  void control(unsigned char byte, std::string& output);
  void utf8(unsigned char byte, std::string& output);
  void escape(unsigned char byte, std::string& output);
  void escape_intermediate(unsigned char byte, std::string& output);
  void csi(unsigned char byte, std::string& output);
  void string(unsigned char byte);
  void reject_held(std::string& output);
  void pass_held(std::string& output);

  EscapePolicy policy_;
  State state_ = State::ground;
  std::string held_;
  std::size_t expected_ = 0;  ///< bytes of the UTF-8 character, or of a string that is dropped
};

}  // namespace sbx::supervise
