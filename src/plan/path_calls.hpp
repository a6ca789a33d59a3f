#pragma once

#include <vector>

/// System calls that take a path: --explain records them.
namespace sbx::plan {

struct PathCall {
  int number = 0;
  int path = 0;                  ///< index of the path argument
  int directory = kNoDirectory;  ///< index of the directory descriptor
  int flags = kNoFlags;          ///< index of the open(2) flags

  static constexpr int kNoDirectory = -1;
  static constexpr int kNoFlags = -1;
};

[[nodiscard]] const std::vector<PathCall>& path_calls();
/// Their numbers.
[[nodiscard]] std::vector<int> calls_with_paths();

}  // namespace sbx::plan
