#include "base/tell.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/sys.hpp"
#include "base/text.hpp"

namespace sbx {

Paint paint_for(Color color, int descriptor) {
  if (color != Color::automatic) return {.on = color == Color::always};
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return {};
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::strcmp(term, "dumb") == 0) return {};
  return {.on = ::isatty(descriptor) == 1};
}

std::size_t terminal_columns(int descriptor) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

void write_stderr(const std::string& text) {
  (void)sys::write_all(STDERR_FILENO, text);
}

std::string note_lines(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "sbx: " + printable(note) + "\n";
  return text;
}

}  // namespace sbx
