#include "workspace/host_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "workspace/tree.hpp"

namespace sbx::workspace {

Result<Spot> HostNames::look(const std::string& path) {
  const LayerPath place = place_of(copy_, path);
  const std::string directory = directory_of(place.path);
  if (!open_.valid() || open_layer_ != place.layer || open_path_ != directory) {
    open_ = SBX_TRY(open_directory(place.layer->lower.get(), directory));
    open_layer_ = place.layer;
    open_path_ = directory;
    if (const Status same = check_same(directory_of(path), open_.get()); !same) {
      open_.reset();
      return std::unexpected(same.error());
    }
  }
  Spot spot{.directory = open_.get(), .name = name_of(place.path)};
  spot.exists = ::fstatat(spot.directory, spot.name.c_str(), &spot.facts, AT_SYMLINK_NOFOLLOW) == 0;
  return spot;
}

Status HostNames::check_same(const std::string& path, int directory) {
  const auto now = held::identity_of(directory);
  const auto first = directories_.try_emplace(path, now.value_or(held::Identity{})).first;
  if (now && first->second == *now) return {};
  return fail(Error{.kind = ErrorKind::host,
                    .code = "replaced",
                    .message = "another process replaced its directory"});
}

std::optional<held::Identity> HostNames::first(const std::string& directory) const {
  const auto known = directories_.find(directory);
  return known == directories_.end() ? std::nullopt : std::optional(known->second);
}

/// A set has no content of a file whose mode alone changed: it is the host's.
Result<UniqueFd> HostNames::content_of(const Change& change) {
  if (change.change != ChangeKind::mode) return open_content(copy_, change);
  const Spot spot = SBX_TRY(look(change.path));
  return open_file(spot.directory, spot.name);
}

}  // namespace sbx::workspace
