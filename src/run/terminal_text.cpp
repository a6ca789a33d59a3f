#include "run/terminal_text.hpp"

#include <unistd.h>

namespace sbx::run {

std::string TerminalText::add(std::string_view piece) {
  std::string shown;
  filter_.feed(piece, shown);
  return shown;
}

std::string TerminalText::end() {
  std::string shown;
  filter_.finish(shown);
  return shown;
}

std::string made_safe(const std::string& text, int descriptor) {
  if (::isatty(descriptor) != 1) return text;
  TerminalText whole;
  std::string shown = whole.add(text);
  return shown + whole.end();
}

}  // namespace sbx::run
