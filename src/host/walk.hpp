#pragma once

#include <sys/types.h>

#include <string>

#include "host/host.hpp"

namespace sbx::host {

[[nodiscard]] FileType type_of(mode_t mode);

/// Files::walk on the real file system: one getdents64(2) for many names, one statx(2) for each.
[[nodiscard]] Status walk_tree(const std::string& root, const Visit& visit, const Shut& shut);

}  // namespace sbx::host
