#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

/// The small languages inside option values: PATH:TARGET, DIR:MODE, NAME=VALUE.
namespace sbx::cli {

struct PathOperand {
  std::string source;
  std::string suffix;  ///< what followed the colon, empty if nothing did
};

enum class Target : std::uint8_t { absolute, anywhere };

/// PATH[:TARGET]. The first colon divides; one that belongs to a name is written `\:` (and `\\` is
/// a backslash before it). Never looks at the file system: the same text always
/// means the same. Errors: usage.
[[nodiscard]] Result<PathOperand> split_path_operand(std::string_view text, std::string_view option,
                                                     Target target = Target::absolute);

struct WorkspaceOperand {
  std::string folder;
  std::string mode;  ///< empty if not given
};
/// DIR[:overlay|read-only|read-write|empty]; an empty DIR is ".". Errors: usage.
[[nodiscard]] Result<WorkspaceOperand> split_workspace_operand(std::string_view text);

}  // namespace sbx::cli
