#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

/// The syntax of option values: PATH:TARGET, DIR:MODE, NAME=VALUE.
namespace sbx::cli {

struct PathOperand {
  std::string source;
  std::string suffix;  ///< what followed the colon; may be empty
};

enum class Target : std::uint8_t { absolute, anywhere };

/// PATH[:TARGET], split at the first colon. A colon in a name is written `\:`, and a backslash
/// before it `\\`. Never consults the file system: the same text always means the same. Errors:
/// usage.
[[nodiscard]] Result<PathOperand> split_path_operand(std::string_view text, std::string_view option,
                                                     Target target = Target::absolute);

struct WorkspaceOperand {
  std::string directory;
  std::string mode;  ///< empty if not given
};
/// DIR[:overlay|read-only|read-write|empty]; an empty DIR is ".". Errors: usage.
[[nodiscard]] Result<WorkspaceOperand> split_workspace_operand(std::string_view text);

}  // namespace sbx::cli
