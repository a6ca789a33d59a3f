#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Reads trees that an untrusted program wrote: by descriptor, beneath a root, never through a link, never into another
/// mount. Paths are relative to the root; "." is the root.
namespace sbx::workspace {

struct Entry {
  std::string name;
  struct stat facts{};
};

/// Errors: host.
[[nodiscard]] Result<UniqueFd> open_folder(int root, const std::string& path);
/// Of a directory in the private tmpfs of a run that is over: one that its mode closes to its owner is
/// opened to it first.
[[nodiscard]] Result<UniqueFd> open_private_folder(int root, const std::string& path);
/// A regular file there, for reading. Never waits on a FIFO. Errors: host.
[[nodiscard]] Result<UniqueFd> open_private_file(int root, const std::string& path);
[[nodiscard]] Result<UniqueFd> open_file(int root, const std::string& path);

/// The entries of a directory, sorted by name. Errors: host.
[[nodiscard]] Result<std::vector<Entry>> read_folder(int folder);

/// The same without looking at each. Errors: host.
[[nodiscard]] Result<std::vector<std::string>> read_names(int folder);

/// The text of a symbolic link. Errors: host.
[[nodiscard]] Result<std::string> read_link(int root, const std::string& path);

[[nodiscard]] FileType type_of(mode_t mode);
/// Whether an entry of a veil hides its name: a whiteout, or the FIFO that stands for one beside a copy.
[[nodiscard]] bool hides_its_name(const struct stat& facts);
/// "a/b" and "c" give "a/b/c"; "." and "c" give "c".
[[nodiscard]] std::string join(const std::string& folder, std::string_view name);
/// "." for a name without a slash.
[[nodiscard]] std::string folder_of(const std::string& path);
[[nodiscard]] std::string name_of(const std::string& path);

/// Same bytes: sizes are equal already. Holes are skipped, so the cost is what is really stored.
[[nodiscard]] bool same_content(int one, int other, off_t size);
[[nodiscard]] bool has_content(int file, std::string_view content);

}  // namespace sbx::workspace
