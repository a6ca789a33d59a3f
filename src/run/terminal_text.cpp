#include "run/terminal_text.hpp"

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

std::string for_terminal(const std::string& text) {
  TerminalText whole;
  std::string shown = whole.add(text);
  return shown + whole.end();
}

}  // namespace sbx::run
