#include "run/session_hints.hpp"

#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace sbx::run {

Error naming_session(Error error, const std::string& session) {
  constexpr std::string_view kCommand = "sbx session ";
  constexpr std::string_view kName = " NAME";
  std::string& hint = error.hint;
  for (auto at = hint.find(kCommand); at != hint.npos; at = hint.find(kCommand, at + 1)) {
    const auto verb = at + kCommand.size();
    const auto end = hint.find(' ', verb);
    if (end == hint.npos || hint.compare(end, kName.size(), kName) != 0) continue;
    if (hint.compare(verb, end - verb, "start") == 0) continue;  // of any name
    hint.replace(end + 1, kName.size() - 1, printable(shell_word(session)));
  }
  return error;
}

}  // namespace sbx::run
