#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// How sbx speaks to people on a terminal or in a log.
namespace sbx {

enum class Color : std::uint8_t { automatic, always, never };

/// Escape sequences, or nothing.
struct Paint {
  bool on = false;
  [[nodiscard]] std::string bold(const std::string& text) const { return wrap("1", text); }
  [[nodiscard]] std::string red(const std::string& text) const { return wrap("1;31", text); }
  [[nodiscard]] std::string blue(const std::string& text) const { return wrap("1;34", text); }
  [[nodiscard]] std::string green(const std::string& text) const { return wrap("1;32", text); }

 private:
  [[nodiscard]] std::string wrap(const char* code, const std::string& text) const {
    return on ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }
};

/// Colour for a descriptor: --color, NO_COLOR (when not empty), TERM=dumb, and whether it is a
/// terminal.
[[nodiscard]] Paint paint_for(Color color, int descriptor);

/// The width of the terminal that this descriptor is; 80 if it is none, or does not know its width.
[[nodiscard]] std::size_t terminal_columns(int descriptor);

/// Whole lines on stderr. Returns nothing: an error of stderr could be reported nowhere.
void write_stderr(const std::string& text);

/// "sbx: LINE\n" for each, made safe for a terminal.
[[nodiscard]] std::string note_lines(const std::vector<std::string>& notes);

}  // namespace sbx
