#pragma once

#include <vector>

/// System calls that are handed a path: what --explain looks at.
namespace sbx::plan {

struct PathCall {
  int number = 0;
  int path = 0;            ///< which argument is the path
  int folder = kNoFolder;  ///< which is the folder that it is relative to
  int flags = kNoFlags;    ///< which has the flags of open(2)

  static constexpr int kNoFolder = -1;
  static constexpr int kNoFlags = -1;
};

[[nodiscard]] const std::vector<PathCall>& path_calls();
/// Their numbers.
[[nodiscard]] std::vector<int> calls_with_paths();

}  // namespace sbx::plan
