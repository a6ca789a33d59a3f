#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <unordered_map>

#include "base/held.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "workspace/changes.hpp"

namespace sbx::workspace {

/// A name on the host: its directory, and the file that has the name.
struct Spot {
  int directory = -1;
  std::string name;
  bool exists = false;
  struct stat facts{};
};

/// Looks up names of the workspace on the host. Each directory must stay the one that it was at
/// first: another user's may hold another one under this name than a moment ago.
class HostNames {
 public:
  explicit HostNames(const Copy& copy) : copy_(copy) {}

  /// Errors: host, also "replaced".
  Result<Spot> look(const std::string& path);
  /// The file that a change leaves there. Errors: host.
  Result<UniqueFd> content_of(const Change& change);
  /// A directory as it was at first; none: it was not looked into.
  [[nodiscard]] std::optional<held::Identity> first(const std::string& directory) const;
  /// The next directory is opened anew.
  void close() { open_.reset(); }

 private:
  Status check_same(const std::string& path, int directory);

  const Copy& copy_;
  std::unordered_map<std::string, held::Identity> directories_;  ///< by path, as first seen
  /// Kept open: most changes have the directory of the change before.
  const Layer* open_layer_ = nullptr;
  std::string open_path_;
  UniqueFd open_;
};

}  // namespace sbx::workspace
