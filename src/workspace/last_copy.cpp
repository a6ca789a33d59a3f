#include "workspace/last_copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr std::size_t kMostCompared = 100;  // files of one size
constexpr std::size_t kMostHidden = 10'000;
constexpr std::size_t kMostMoved = 100;

constexpr std::size_t kBeginning = 64;  // bytes by which a file is known again

}  // namespace

std::string LastCopies::same_in(const Paths& paths, std::uint64_t bytes, int file) const {
  const auto found = paths.find(bytes);
  if (found == paths.end() || bytes == 0) return {};
  std::size_t compared = 0;
  for (const std::string& path : found->second) {
    if (++compared > kMostCompared) break;
    const auto content = open_content(copy_, {.path = path});
    if (content && same_content(content->get(), file, static_cast<off_t>(bytes))) return path;
  }
  return {};
}

void LastCopies::add_left_out(const std::string& path, std::uint64_t bytes, bool is_new) {
  left_out_[bytes].push_back(path);
  if (copy_.stored || moved_.size() >= kMostMoved) return;  // the set has it
  const auto file = open_content(copy_, {.path = path});
  if (file && is_of_host(path, file->get()))
    moved_.push_back({.path = path, .bytes = bytes, .is_new = is_new});
}

/// An overlay marks what it copied up (fs/overlayfs/copy_up.c, ovl_set_origin). A copied workspace
/// has only files older than its filling.
bool LastCopies::is_of_host(const std::string& path, int file) const {
  if (!place_of(copy_, path).layer->copied)
    return ::fgetxattr(file, "user.overlay.origin", nullptr, 0) >= 0;
  struct statx facts{};
  if (::statx(file, "", AT_EMPTY_PATH, STATX_BTIME, &facts) != 0 ||
      (facts.stx_mask & STATX_BTIME) == 0)
    return false;
  return std::pair<time_t, long>(facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec) <
         std::pair<time_t, long>(copy_.filled.tv_sec, copy_.filled.tv_nsec);
}

bool LastCopies::begins_alike(const Moved& moved, std::uint64_t bytes, int file) const {
  const auto content = open_content(copy_, {.path = moved.path});
  const std::size_t size = std::min<std::uint64_t>({kBeginning, bytes, moved.bytes});
  std::array<char, kBeginning> here{};
  std::array<char, kBeginning> there{};
  return content && size > 0 &&
         ::pread(content->get(), here.data(), size, 0) == static_cast<ssize_t>(size) &&
         ::pread(file, there.data(), size, 0) == static_cast<ssize_t>(size) &&
         std::memcmp(here.data(), there.data(), size) == 0;
}

UniqueFd LastCopies::open_deleted(const Change& deleted) const {
  const LayerPath place = place_of(copy_, deleted.path);
  if (place.layer == nullptr || !place.layer->lower.valid()) return {};
  auto file = open_file(place.layer->lower.get(), place.path);
  return file ? std::move(*file) : UniqueFd();
}

std::string LastCopies::holder_of(const Change& deleted, int file) const {
  std::string holder = same_in(left_out_, deleted.bytes, file);
  for (const Moved& moved : moved_)
    if (holder.empty() && begins_alike(moved, deleted.bytes, file)) holder = moved.path;
  return holder;
}

std::vector<Left> LastCopies::held(const std::vector<const Change*>& deleted,
                                   const std::vector<const Change*>& others) const {
  std::vector<Left> held;
  std::vector<std::string> unknown;  // deleted files without a copy
  std::set<std::string> known;       // moved files whose old name was found
  for (const Change* each : others)
    if (const UniqueFd file = open_deleted(*each); file.valid() && !moved_.empty())
      known.insert(holder_of(*each, file.get()));
  for (const Change* each : deleted) {
    const UniqueFd file = open_deleted(*each);
    if (!file.valid() || each->bytes == 0) continue;
    std::string holder = holder_of(*each, file.get());
    known.insert(holder);
    if (!same_in(brought_out_, each->bytes, file.get()).empty()) continue;
    if (holder.empty())
      unknown.push_back(each->path);
    else
      held.push_back({.path = each->path, .why = std::move(holder)});
  }
  for (const Moved& moved : moved_) {
    if (!moved.is_new || known.contains(moved.path)) continue;
    for (std::string& path : unknown) held.push_back({.path = std::move(path), .why = moved.path});
    break;
  }
  return held;
}

void note_held(const Copy& copy, ChangeSet& changes) {
  if (changes.hidden.empty()) return;
  LastCopies copies(copy);
  std::vector<std::string> waiting;
  for (const Left& each : changes.hidden) waiting.push_back(each.path);
  std::size_t seen = 0;
  while (!waiting.empty() && ++seen <= kMostHidden) {
    const std::string path = std::move(waiting.back());
    waiting.pop_back();
    const LayerPath place = place_of(copy, path);
    if (const auto directory = open_private_directory(place.layer->upper.get(), place.path)) {
      for (const std::string& name :
           read_names(directory->get()).value_or(std::vector<std::string>()))
        waiting.push_back(join(path, name));
    } else if (const auto file = open_private_file(place.layer->upper.get(), place.path)) {
      struct stat facts{};
      if (::fstat(file->get(), &facts) == 0)
        copies.add_left_out(path, static_cast<std::uint64_t>(facts.st_size), true);
    }
  }
  for (const Change& change : changes.changes)
    if (change.change == ChangeKind::created || change.change == ChangeKind::modified ||
        change.change == ChangeKind::links)
      copies.add_brought_out(change.path, change.bytes);
  std::vector<const Change*> deleted;
  for (const Change& change : changes.changes)
    if (change.change == ChangeKind::deleted && change.type == FileType::file)
      deleted.push_back(&change);
  changes.held = copies.held(deleted);
}

}  // namespace sbx::workspace
