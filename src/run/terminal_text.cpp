#include "run/terminal_text.hpp"

#include "supervise/streams/escape_filter.hpp"

namespace sbx::run {

std::string for_terminal(const std::string& text) {
  supervise::EscapeFilter filter(supervise::EscapePolicy::visible);
  std::string shown;
  filter.feed(text, shown);
  filter.finish(shown);
  return shown;
}

}  // namespace sbx::run
