#include "session/session_name.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/text.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kLongestName = 63;

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

}  // namespace

Status check_name(std::string_view name) {
  const bool right = !name.empty() && name.size() <= kLongestName && is_name_letter(name.front()) &&
                     std::ranges::all_of(
                         name, [](char letter) { return is_name_letter(letter) || letter == '-'; });
  if (right) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-session-name",
                    .message = "\"" + printable(name) + "\" can't be the name of a session",
                    .hint =
                        "lower-case letters, digits and hyphens, at most 63, not beginning with "
                        "a hyphen"});
}

std::string make_name() {
  return "s-" + random_hex().substr(8);
}

}  // namespace sbx::session
