#include "changes/applied_notes.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/held.hpp"
#include "workspace/tree.hpp"

namespace sbx::changes {
namespace {

using workspace::Noted;
using workspace::NotedFiles;

bool is_unchanged(const struct stat& one, const struct stat& other) {
  return one.st_ino == other.st_ino && one.st_size == other.st_size &&
         one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec &&
         one.st_ctim.tv_sec == other.st_ctim.tv_sec && one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
}

/// The bytes tell that nobody wrote to it since: between the application and this look somebody
/// could have.
std::optional<struct stat> look_at_file(const Copy& copy, const Change& change, int directory,
                                        const std::string& name) {
  const auto file = workspace::open_file(directory, name);
  const auto content = workspace::open_content(copy, change);
  struct stat first{};
  struct stat last{};
  if (!file || !content || ::fstat(file->get(), &first) != 0 ||
      static_cast<std::uint64_t>(first.st_size) != change.bytes ||
      !workspace::same_content(file->get(), content->get(), first.st_size) ||
      ::fstat(file->get(), &last) != 0 || !is_unchanged(first, last))
    return std::nullopt;
  return first;
}

/// The set has no content of a file whose permissions alone were applied: its times tell.
bool has_new_mode_only(const Copy& copy, const Change& change, const struct stat& now) {
  const auto was = copy.stored->before.find(change.path);
  if (was == copy.stored->before.end() || was->second.disturbed) return false;
  Noted with_new_mode = was->second;
  with_new_mode.changed = now.st_ctim;
  return workspace::is_as_noted(with_new_mode, now);
}

/// True where nobody else changed a name that was applied; `now`: how it is, none: it is gone.
bool is_ours(const Copy& copy, const Change& change, std::optional<struct stat>& now) {
  const workspace::LayerPath place = workspace::place_of(copy, change.path);
  const std::string name = workspace::name_of(place.path);
  const auto directory =
      workspace::open_directory(place.layer->lower.get(), workspace::directory_of(place.path));
  struct stat facts{};
  const bool is_there =
      directory && ::fstatat(directory->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
  if (change.change == ChangeKind::deleted || !is_there)
    return change.change == ChangeKind::deleted && !is_there;
  now = facts;
  if (workspace::type_of(facts.st_mode) != change.type) return false;
  if (change.type == FileType::directory) return true;
  if (change.change == ChangeKind::mode) return has_new_mode_only(copy, change, facts);
  if (change.type == FileType::file) {
    now = look_at_file(copy, change, directory->get(), name);
    return now.has_value();
  }
  const auto here = workspace::read_link(directory->get(), name);
  const auto wanted = workspace::link_content(copy, change);
  return here && wanted && *here == *wanted;
}

/// As they were noted before.
Store::Notes notes_in(const Store& store, const std::string& name) {
  Store::Notes notes;
  const auto kept = store.load(name);
  if (!kept) return notes;
  for (const Change& each : kept->changes.changes) {
    std::optional<struct stat>& note = notes[each.path];
    const auto before = kept->copy.stored->before.find(each.path);
    if (before == kept->copy.stored->before.end()) continue;
    struct stat& facts = note.emplace();
    facts.st_mode = each.mode | (each.type == FileType::directory ? S_IFDIR
                                 : each.type == FileType::link    ? S_IFLNK
                                                                  : S_IFREG);
    facts.st_ino = before->second.inode;
    facts.st_size = static_cast<off_t>(before->second.bytes);
    facts.st_mtim = before->second.modified;
    facts.st_ctim = before->second.changed;
    facts.st_nlink = before->second.links;
  }
  return notes;
}

}  // namespace

void note_as_applied(const Store& store, const std::string& name, const Kept& kept,
                     const std::vector<Change>& done) {
  if (done.empty()) return;
  Store::Notes notes = notes_in(store, name);
  for (const Change& change : done) {
    std::optional<struct stat> now;
    notes.erase(change.path);
    if (is_ours(kept.copy, change, now)) notes.emplace(change.path, now);
  }
  (void)store.replace_notes(name, kept.copy, notes);
}

void take_notes(const Store& store, const std::string& name, Copy& copy) {
  NotedFiles files;
  std::map<const workspace::Layer*, std::shared_ptr<plan::SeenTree>> trees;
  for (const auto& [path, facts] : notes_in(store, name)) {
    const workspace::LayerPath place = workspace::place_of(copy, path);
    struct stat lower{};
    if (!facts) {
      files.emplace(path, Noted{});
    } else if (!S_ISDIR(facts->st_mode)) {
      files.emplace(path, workspace::noted(*facts));
    } else if (place.layer->seen && ::fstat(place.layer->lower.get(), &lower) == 0) {
      const auto* const known = place.layer->seen->directory(place.path);
      if (known != nullptr && known->file.inode == facts->st_ino) continue;
      auto& tree = trees[place.layer];
      if (!tree) tree = std::make_shared<plan::SeenTree>(*place.layer->seen);
      tree->add_directory(place.path, {.device = lower.st_dev, .inode = facts->st_ino},
                          facts->st_mode);
    }
  }
  const auto shared = std::make_shared<const NotedFiles>(std::move(files));
  for (workspace::Layer& layer : copy.layers) {
    layer.applied = shared;
    if (const auto tree = trees.find(&layer); tree != trees.end()) layer.seen = tree->second;
  }
}

}  // namespace sbx::changes
