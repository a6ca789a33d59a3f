#include "workspace/changes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "workspace/names.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

bool is_whiteout(const struct stat& facts) {
  return S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(0, 0);
}

/// A directory that replaces the one below it. The kernel escapes this name for programs inside, so
/// they can't set it (Documentation/filesystems/overlayfs.rst, "userxattr").
bool is_opaque(int directory) {
  char value = 0;
  return ::fgetxattr(directory, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

/// One layer against the directory below it. Directories wait in a list and are opened by their
/// path from the root, two descriptors at a time, however deep the tree is.
class Comparison {
 public:
  Comparison(const Layer& layer, const Copy& copy, MostFound& room, ChangeSet& found)
      : layer_(layer),
        directory_(copy.directory),
        hidden_(*copy.hidden),
        untouched_before_(layer.copied ? copy.filled : layer.linked_at),
        room_(room),
        found_(found),
        names_(layer.unlinked) {}

  Status run() {
    struct stat upper{};
    struct stat lower{};
    const bool has_lower = layer_.lower.valid();
    if (layer_.copied)
      lower = layer_.copied->root();
    else if (has_lower && ::fstat(layer_.lower.get(), &lower) != 0)
      lower.st_mode = 0;
    if (lower.st_mode != 0 && ::fstat(layer_.upper.get(), &upper) == 0 &&
        mode_differs(upper, lower) && !has_mode_seen(".", upper))
      note(".", ChangeKind::mode, upper);
    waiting_.push_back({".", has_lower, layer_.copied != nullptr});
    while (!waiting_.empty()) {
      const Directory next = std::move(waiting_.back());
      waiting_.pop_back();
      compare(next);
    }
    note_links();
    note_made();
    return {};
  }

 private:
  struct Directory {
    std::string path;
    bool has_lower = false;
    bool replaces = false;  ///< what it does not have is gone, not shown from below
  };

  /// The names that the program saw in a directory of the host: all but the hidden ones.
  struct Below {
    UniqueFd lower;
    PrivateDirectory veil;
    std::span<const CopiedEntry> copied;  ///< all of them, where the workspace is a copy
    std::string path;                     ///< on the host
  };
  struct Before {
    struct stat facts{};
    bool from_veil = false;
    ino_t copy = 0;  ///< where the workspace is a copy: the inode of this name's copy
  };

  Below open_below(const std::string& path) const {
    Below below{.path = path == "." ? layer_.source : layer_.source + "/" + path};
    if (layer_.copied) below.copied = layer_.copied->names_in(path);
    if (layer_.lower.valid())
      if (auto opened = open_directory(layer_.lower.get(), path)) below.lower = std::move(*opened);
    if (layer_.veil.valid())
      if (auto opened = open_private_directory(layer_.veil.get(), path))
        below.veil = std::move(*opened);
    return below;
  }

  bool is_hidden(const Below& below, const std::string& name) const {
    struct stat facts{};
    if (below.veil.valid() &&
        ::fstatat(below.veil.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        hides_its_name(facts))
      return true;
    return hidden_.hides(below.path, name) != nullptr;
  }

  [[nodiscard]] std::optional<Before> look_below(const Below& below,
                                                 const std::string& name) const {
    if (layer_.copied) return look_in_copied(below, name);
    Before before;
    before.from_veil =
        below.veil.valid() &&
        ::fstatat(below.veil.get(), name.c_str(), &before.facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(before.facts.st_mode);
    if (before.from_veil) {  // the content is the veil's, the mode was the host's
      struct stat lower{};
      if (below.lower.valid() &&
          ::fstatat(below.lower.get(), name.c_str(), &lower, AT_SYMLINK_NOFOLLOW) == 0)
        before.facts.st_mode = lower.st_mode;
      return before;
    }
    if (below.lower.valid() &&
        ::fstatat(below.lower.get(), name.c_str(), &before.facts, AT_SYMLINK_NOFOLLOW) == 0)
      return before;
    return std::nullopt;
  }

  static std::optional<Before> look_in_copied(const Below& below, const std::string& name) {
    const auto found = std::ranges::lower_bound(below.copied, name, {}, &CopiedEntry::name);
    if (found == below.copied.end() || found->name() != name) return std::nullopt;
    return Before{.facts = found->host(), .from_veil = found->from_veil(), .copy = found->copy()};
  }

  static mode_t permissions(const struct stat& facts) { return facts.st_mode & 07777; }

  /// A copy of a directory whose group is none of the caller's loses the set-group-ID bit,
  /// chmod(2).
  static bool mode_differs(const struct stat& now, const struct stat& before) {
    const mode_t lost = S_ISDIR(before.st_mode) ? before.st_mode & (S_ISUID | S_ISGID) : 0;
    return (permissions(now) | lost) != permissions(before);
  }

  /// It is the host's directory whose permissions changed since.
  [[nodiscard]] bool has_mode_seen(const std::string& path, const struct stat& now) const {
    if (!S_ISDIR(now.st_mode)) return false;
    const auto seen = directory_seen(layer_, path);
    if (!seen) return false;
    struct stat before = now;
    before.st_mode = S_IFDIR | seen->mode;
    return !mode_differs(now, before);
  }

  /// False: it is counted as left out.
  bool has_room(const std::string& path) {
    if (room_.changes == 0 || room_.name_bytes < path.size()) {
      ++found_.left_out;
      return false;
    }
    --room_.changes;
    room_.name_bytes -= path.size();
    return true;
  }

  void note(const std::string& path, ChangeKind kind, const struct stat& facts) {
    if (!has_room(path)) return;
    found_.changes.push_back(
        {.path = in_workspace(path),
         .change = kind,
         .type = type_of(facts.st_mode),
         .bytes = S_ISREG(facts.st_mode) ? static_cast<std::uint64_t>(facts.st_size) : 0,
         .mode = permissions(facts)});
  }

  [[nodiscard]] std::string in_workspace(const std::string& path) const {
    if (layer_.prefix == ".") return path;
    return path == "." ? layer_.prefix : join(layer_.prefix, path);
  }

  void unread(const std::string& path, const Error& error) {
    if (has_room(path)) found_.unread.push_back({join(layer_.prefix, path), error.text()});
  }

  void compare(const Directory& directory) {
    const auto upper = open_private_directory(layer_.upper.get(), directory.path);
    if (!upper) return unread(directory.path, upper.error());
    auto entries = read_directory(upper->get());
    if (!entries) return unread(directory.path, entries.error());
    const Below below =
        directory.has_lower ? open_below(directory.path) : Below{.path = on_host(directory)};
    const bool replaces = directory.replaces || is_opaque(upper->get());
    for (const Entry& entry : *entries) {
      const std::string path = join(directory.path, entry.name);
      if (is_hidden(below, entry.name))
        keep(path, entry.facts);
      else
        one(path, entry.facts, look_below(below, entry.name), replaces);
    }
    if (replaces) note_missing(directory.path, below, *entries);
  }

  [[nodiscard]] std::string on_host(const Directory& directory) const {
    return directory.path == "." ? layer_.source : layer_.source + "/" + directory.path;
  }

  /// What the program made under a hidden name is its own.
  void keep(const std::string& path, const struct stat& facts) {
    if (!is_whiteout(facts) && !std::ranges::binary_search(layer_.made, path) && has_room(path))
      found_.hidden.push_back({join(layer_.prefix, path),
                               "a name that filesystem.deny hides: it stays in the sandbox"});
  }

  void one(const std::string& path, const struct stat& now, const std::optional<Before>& seen,
           bool replaces) {
    const struct stat* before = seen ? &seen->facts : nullptr;
    if (is_whiteout(now)) {
      if (before != nullptr) gone(path, *before);
      return;
    }
    const bool is_directory = S_ISDIR(now.st_mode);
    const bool was_directory = before != nullptr && S_ISDIR(before->st_mode);
    // What a new directory holds is left out with it: the list of those that wait is bounded so
    // too.
    const bool is_left_out = found_.left_out > 0 && !was_directory;
    if (is_directory && !is_left_out) waiting_.push_back({path, was_directory, replaces});
    if (before == nullptr && std::ranges::binary_search(layer_.made, path)) {
      if (is_directory) made_.push_back({path, now});
      return;
    }
    const bool is_exchanged = is_directory != was_directory && before != nullptr;
    if (is_exchanged) gone(path, *before);
    auto change = is_exchanged ? ChangeKind::created : change_of(path, now, seen);
    if (change && !is_exchanged && is_applied(path, now)) change.reset();
    if (change) note(path, *change, now);
    // What a veil showed is not the host's file.
    if (LinkedNames::may_matter(now, before) && (change || !seen->from_veil))
      names_.add({.path = path,
                  .now = now,
                  .before = before == nullptr ? std::nullopt : std::optional(*before),
                  .change = change});
  }

  std::optional<ChangeKind> change_of(const std::string& path, const struct stat& now,
                                      const std::optional<Before>& seen) {
    if (!seen) return change_of_taken(path, now);
    if (is_untouched(now, *seen)) return std::nullopt;
    if (!S_ISDIR(now.st_mode) && differs(path, now, *seen)) return ChangeKind::modified;
    if (!S_ISLNK(now.st_mode) && mode_differs(now, seen->facts) && !has_mode_seen(path, now))
      return ChangeKind::mode;
    return std::nullopt;
  }

  /// The host has no such name now. If it had one of this kind at the start, the user took it away
  /// meanwhile: the program made nothing new, and what it wrote belongs to what is gone.
  [[nodiscard]] std::optional<ChangeKind> change_of_taken(const std::string& path,
                                                          const struct stat& now) const {
    if (S_ISDIR(now.st_mode)) {
      if (!directory_seen(layer_, path)) return ChangeKind::created;
      return has_mode_seen(path, now) ? std::nullopt : std::optional(ChangeKind::mode);
    }
    if (!had_name(layer_, path)) return ChangeKind::created;
    return is_untouched(now, {}) ? std::nullopt : std::optional(ChangeKind::modified);
  }

  [[nodiscard]] std::optional<struct stat> look_at_host(const std::string& path, int& error) const {
    struct stat facts{};
    const auto directory = open_directory(layer_.lower.get(), directory_of(path));
    if (directory &&
        ::fstatat(directory->get(), name_of(path).c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
      return facts;
    error = directory ? errno : directory.error().errno_value;
    return std::nullopt;
  }

  /// An overlay is compared with the host as it is, a copy with the host as it was: there, what
  /// `apply` wrote since would be found again.
  bool is_applied(const std::string& path, const struct stat& now) {
    if (!layer_.copied || !layer_.applied) return false;
    int error = 0;
    const auto host = look_at_host(path, error);
    if (!host || (!S_ISLNK(now.st_mode) && mode_differs(now, *host))) return false;
    if (S_ISDIR(now.st_mode)) return S_ISDIR(host->st_mode) && !directory_seen(layer_, path);
    const Noted* const note = note_of(layer_, path);
    return note != nullptr && is_as_noted(*note, *host) && !differs(path, now, {.facts = *host});
  }

  [[nodiscard]] bool is_removal_applied(const std::string& path) const {
    const Noted* const note = layer_.copied ? note_of(layer_, path) : nullptr;
    int error = 0;
    return note != nullptr && note->inode == 0 && !look_at_host(path, error) &&
           (error == ENOENT || error == ENOTDIR);
  }

  /// Nobody can set ctime back: what is older than the start was copied by sbx. Then the host's
  /// file may have changed since, not this one. A directory that was renamed takes such files to
  /// other names: there they are not the copies that were made under these.
  [[nodiscard]] bool is_untouched(const struct stat& now, const Before& seen) const {
    if (layer_.copied ? now.st_ino != seen.copy : S_ISLNK(now.st_mode)) return false;
    return std::pair(now.st_ctim.tv_sec, now.st_ctim.tv_nsec) <
           std::pair(untouched_before_.tv_sec, untouched_before_.tv_nsec);
  }

  bool differs(const std::string& path, const struct stat& now, const Before& seen) {
    const struct stat& before = seen.facts;
    if ((now.st_mode & S_IFMT) != (before.st_mode & S_IFMT)) return true;
    if (S_ISLNK(now.st_mode)) {
      const auto here = read_private_link(layer_.upper.get(), path);
      const auto there = read_link(layer_.lower.get(), path);
      return !here || !there || *here != *there;
    }
    if (!S_ISREG(now.st_mode)) return false;
    if (now.st_size != before.st_size) return true;
    // Times prove nothing: the program can set them.
    const auto here = open_private_file(layer_.upper.get(), path);
    const auto there = open_file((seen.from_veil ? layer_.veil : layer_.lower).get(), path);
    return !here || !there || !same_content(here->get(), there->get(), now.st_size);
  }

  /// Names below that a replacing directory does not have.
  void note_missing(const std::string& path, const Below& below,
                    const std::vector<Entry>& present) {
    if (!layer_.copied && !below.lower.valid()) return;
    const auto before = names_below(below);
    if (!before) return unread(path, before.error());
    for (const Entry& entry : *before)
      if (!std::ranges::binary_search(present, entry.name, {}, &Entry::name))
        gone(join(path, entry.name), entry.facts);
  }

  /// What the program saw in a directory of the host.
  [[nodiscard]] Result<std::vector<Entry>> names_below(const Below& below) const {
    std::vector<Entry> names;
    if (layer_.copied)
      for (const CopiedEntry& each : below.copied) names.push_back({each.name(), each.host()});
    else if (below.lower.valid())
      names = SBX_TRY(read_directory(below.lower.get()));
    else
      return fail(Error{.message = "can't be looked into"});
    std::erase_if(names, [&](const Entry& each) { return is_hidden(below, each.name); });
    return names;
  }

  /// A directory that sbx made counts as a change if it holds files of the program.
  void note_made() {
    for (const Entry& directory : made_) {
      const std::string inside = join(layer_.prefix, directory.name) + "/";
      const bool is_used = std::ranges::any_of(
          found_.changes, [&](const Change& each) { return each.path.starts_with(inside); });
      if (is_used) note(directory.name, ChangeKind::created, directory.facts);
    }
  }

  void note_gone(const std::string& path, const struct stat& facts) {
    if (is_removal_applied(path)) return;
    note(path, ChangeKind::deleted, facts);
    names_.add_gone(path, facts);
  }

  /// Names whose file is another one than on the host have changed too.
  void note_links() {
    const auto is_fixed = [&](const std::string& path) {
      return !reason_to_protect(directory_, in_workspace(path), FileType::file).empty();
    };
    Links links;
    for (const SeenFile* each : names_.relate(links, found_.linked_files, is_fixed))
      note(each->path, ChangeKind::links, each->now);
    for (auto& [path, linked] : links) {
      if (!linked.to.empty()) linked.to = in_workspace(linked.to);
      found_.links.emplace(in_workspace(path), std::move(linked));
    }
  }

  /// A directory that was moved there since is not the program's to delete.
  [[nodiscard]] bool is_of_others(const std::string& path, const struct stat& facts) const {
    return S_ISDIR(facts.st_mode) && !is_as_seen(layer_, path, facts);
  }

  /// What was below and everything in it.
  void gone(const std::string& path, const struct stat& facts) {
    if (is_of_others(path, facts)) return;
    note_gone(path, facts);
    if (!S_ISDIR(facts.st_mode)) return;
    std::vector<std::string> directories{path};
    while (!directories.empty()) {
      const std::string directory = std::move(directories.back());
      directories.pop_back();
      const auto entries = names_below(open_below(directory));
      if (!entries) {
        unread(directory, entries.error());
        continue;
      }
      for (const Entry& entry : *entries) {
        const std::string inner = join(directory, entry.name);
        if (is_of_others(inner, entry.facts)) continue;
        note_gone(inner, entry.facts);
        if (S_ISDIR(entry.facts.st_mode)) directories.push_back(inner);
      }
    }
  }

  const Layer& layer_;
  const std::string& directory_;  ///< the workspace
  const plan::DenyRules& hidden_;
  timespec untouched_before_;
  MostFound& room_;  ///< what is left of it
  ChangeSet& found_;
  std::vector<Directory> waiting_;
  std::vector<Entry> made_;  ///< directories that sbx made; the names are paths
  LinkedNames names_;
};

}  // namespace

Result<ChangeSet> read_changes(const Copy& copy, MostFound room) {
  ChangeSet found;
  for (const Layer& layer : copy.layers) SBX_TRY(Comparison(layer, copy, room, found).run());
  std::ranges::stable_sort(found.changes, {}, &Change::path);
  return found;
}

}  // namespace sbx::workspace
