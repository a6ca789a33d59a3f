#include "workspace/copied.hpp"

#include <algorithm>
#include <utility>

namespace sbx::workspace {

CopiedEntry::CopiedEntry(std::string name, const struct stat& host, ino_t copy, bool from_veil)
    : name_(std::move(name)),
      copy_(copy),
      device_(host.st_dev),
      inode_(host.st_ino),
      size_(host.st_size),
      links_(host.st_nlink),
      mode_(host.st_mode),
      from_veil_(from_veil) {}

struct stat CopiedEntry::host() const {
  struct stat facts{};
  facts.st_dev = device_;
  facts.st_ino = inode_;
  facts.st_size = size_;
  facts.st_nlink = links_;
  facts.st_mode = mode_;
  return facts;
}

std::span<const CopiedEntry> CopiedTree::names_in(const std::string& directory) const {
  const auto found = directories_.find(directory);
  return found == directories_.end() ? std::span<const CopiedEntry>() : found->second;
}

const CopiedEntry* CopiedTree::find(const std::string& directory, const std::string& name) const {
  const auto names = names_in(directory);
  const auto found = std::ranges::lower_bound(names, name, {}, &CopiedEntry::name);
  return found == names.end() || found->name() != name ? nullptr : &*found;
}

}  // namespace sbx::workspace
