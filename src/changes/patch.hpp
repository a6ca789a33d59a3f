#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "workspace/changes.hpp"

/// Changes as text that `git apply` takes.
namespace sbx::changes {

using workspace::Copy;
using workspace::Left;

struct Patch {
  std::string text;
  /// what the patch can't hold: binary files, files over 1 MiB, modes that git does not keep, and
  /// what comes after kLongestPatch
  std::vector<Left> left;
};

/// A program chooses how much it writes: a patch does not grow with it.
inline constexpr std::size_t kLongestPatch = std::size_t{16} << 20;

/// The changes against what is in the directories below the layers now, which must be open.
/// Directories are not in it: git makes and removes them with their files.
[[nodiscard]] Patch make_patch(const Copy& copy, const std::vector<Change>& changes);

/// A name as git writes it: between quotes, with escapes, unless it is plain.
[[nodiscard]] std::string git_name(const std::string& name);

}  // namespace sbx::changes
