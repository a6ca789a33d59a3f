#include "workspace/links.hpp"

#include <algorithm>
#include <utility>

namespace sbx::workspace {
namespace {

plan::FileId id_of(const struct stat& facts) {
  return {facts.st_dev, facts.st_ino};
}

/// The file of the host that most of the unchanged names have which it belongs to; none: it has no
/// such names.
template <class Names, class IsOwn>
std::optional<plan::FileId> main_file(const Names& names, const IsOwn& is_own) {
  std::map<plan::FileId, std::size_t> counts;
  std::optional<plan::FileId> best;
  for (const SeenFile* name : names) {
    if (name->change || !is_own(id_of(*name->before))) continue;
    const std::size_t count = ++counts[id_of(*name->before)];
    if (!best || count > counts[*best]) best = id_of(*name->before);
  }
  return best;
}

}  // namespace

void LinkedNames::add_gone(const std::string& path, const struct stat& before) {
  if (S_ISREG(before.st_mode) && before.st_nlink > 1) gone_.push_back({path, before});
}

bool LinkedNames::is_split(const struct stat& before) const {
  return before.st_nlink > 1 && std::ranges::binary_search(unlinked_, id_of(before));
}

/// A file of the host stays that of one file inside: where the program gave its names to several,
/// of the one that has most of them.
std::map<plan::FileId, const LinkedNames::Inner*> LinkedNames::owners(
    const std::map<plan::FileId, Inner>& inner) const {
  std::map<plan::FileId, std::pair<const Inner*, std::ptrdiff_t>> best;
  for (const auto& [id, names] : inner)
    for (const SeenFile* name : names) {
      if (name->change) continue;
      const plan::FileId below = id_of(*name->before);
      const auto count = std::ranges::count_if(names, [&](const SeenFile* each) {
        return !each->change && id_of(*each->before) == below;
      });
      auto& place = best[below];
      if (count > place.second) place = {&names, count};
    }
  std::map<plan::FileId, const Inner*> owners;
  for (const auto& [file, owner] : best) owners.emplace(file, owner.first);
  return owners;
}

/// A changed name is one that the others differ from; a deleted one may have been renamed and then
/// written.
void LinkedNames::note_split(Links& links) const {
  if (unlinked_.empty()) return;
  std::map<plan::FileId, std::uint64_t> gone;
  for (const Gone& each : gone_) ++gone[id_of(each.before)];
  for (const Gone& each : gone_)
    if (is_split(each.before) && gone[id_of(each.before)] < each.before.st_nlink)
      links[each.path].is_split = true;
  for (const SeenFile& each : files_)
    if (each.change && each.before && is_split(*each.before)) links[each.path].is_split = true;
}

std::vector<const SeenFile*> LinkedNames::relate(
    Links& links, std::uint64_t& next_number,
    const std::function<bool(const std::string& path)>& is_fixed) {
  std::vector<const SeenFile*> differing;
  if (files_.empty() && gone_.empty()) return differing;
  note_split(links);
  std::map<plan::FileId, Inner> inner;
  for (const SeenFile& each : files_) {
    inner[id_of(each.now)].push_back(&each);
    if (each.before && S_ISREG(each.before->st_mode)) ++known_[id_of(*each.before)];
  }
  for (const Gone& each : gone_) ++known_[id_of(each.before)];
  const auto owner_of = owners(inner);
  for (const auto& [id, names] : inner) {
    const auto is_own = [&](const plan::FileId& file) {
      return std::ranges::binary_search(unlinked_, file) || owner_of.at(file) == &names;
    };
    const auto main = main_file(names, is_own);
    const SeenFile* to = nullptr;
    Inner changed;
    for (const SeenFile* name : names) {
      if (!name->change && main == id_of(*name->before)) {
        if (to == nullptr && !is_fixed(name->path)) to = name;
        continue;
      }
      changed.push_back(name);
      if (!name->change) differing.push_back(name);
    }
    if (to == nullptr && changed.size() < 2) continue;
    ++next_number;
    for (const SeenFile* name : changed) {
      Linked& linked = links[name->path];
      linked.file = next_number;
      if (to == nullptr) continue;
      linked.to = to->path;
      linked.names = known_[*main];
    }
  }
  return differing;
}

}  // namespace sbx::workspace
