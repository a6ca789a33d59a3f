#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a failed program wrote last, as far as it tells of a refusal. A program can write anything:
/// this only says where to look.
namespace sbx::hints {

/// too_large: EFBIG. no_room: ENOSPC. denied: EACCES;
/// write_denied: where the line says that something was to be made or removed. module: of Python;
/// node_module: a package of Node; r_package: one of R.
enum class Trouble : std::uint8_t {
  read_only,
  missing,
  refused,
  too_large,
  no_room,
  denied,
  write_denied,
  module,
  node_module,
  r_package
};

struct LastWord {
  Trouble trouble{};
  /// Names that the line may mean, most probable first: paths; HOST:PORT, or none; a module.
  std::vector<std::string> names;
  bool operator==(const LastWord&) const = default;
};

/// Reads the lines of `text`, the last one first, in the forms of shells, Python, Node, R, gcc and
/// others. At most 16 names in all.
[[nodiscard]] std::vector<LastWord> last_words(std::string_view text);

}  // namespace sbx::hints
