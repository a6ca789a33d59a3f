#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Writing into folders of the host: each file is its old or its new self at every moment, and no
/// link that lies there is followed.
namespace sbx::workspace {

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

/// A folder beneath `root`; folders that are missing are made. Errors: host.
[[nodiscard]] Result<UniqueFd> make_folder(int root, const std::string& path, Owner owner);

/// Copies an open regular file to `name` in `folder` under a temporary name, then renames. A new
/// inode with the bits of `mode` that are permissions and nothing else. Errors: host.
[[nodiscard]] Status put_file(int source, int folder, const std::string& name, mode_t mode,
                              Owner owner);
[[nodiscard]] Status put_link(const std::string& text, int folder, const std::string& name,
                              Owner owner);

}  // namespace sbx::workspace
