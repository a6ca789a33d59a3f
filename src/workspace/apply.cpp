#include "workspace/apply.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <ranges>
#include <utility>

#include "workspace/names.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

bool is_later(const timespec& one, const timespec& other) {
  return std::pair(one.tv_sec, one.tv_nsec) > std::pair(other.tv_sec, other.tv_nsec);
}

class Application {
 public:
  explicit Application(const Copy& copy) : copy_(copy) {}

  /// What is in the way goes first; the other deletions come after the creations, so that a file
  /// that was moved is never in neither place, and because ext4 looks for long for an inode that
  /// was not freed a moment ago. Modes last: one may close the folder that others are written to.
  Applied run(const std::vector<Change>& changes) {
    const auto of = [&](ChangeKind kind, bool folders) {
      return changes | std::views::filter([kind, folders](const Change& each) {
               return each.change == kind && (each.type == FileType::folder) == folders;
             });
    };
    note_replaced(changes);
    remove(of(ChangeKind::deleted, false), of(ChangeKind::deleted, true), true);
    for (const Change& each : of(ChangeKind::mode, true))
      if ((each.mode & 0300) == 0300) (void)set_mode(each);  // opened for what follows; told below
    for (const Change& each : of(ChangeKind::created, true)) finish(each, create_folder(each));
    for (const Change& each : of(ChangeKind::created, false)) finish(each, put(each));
    for (const Change& each : of(ChangeKind::modified, false)) finish(each, put(each));
    remove(of(ChangeKind::deleted, false), of(ChangeKind::deleted, true), false);
    for (const Change& each : of(ChangeKind::mode, false)) finish(each, set_mode(each));
    for (const Change& each : of(ChangeKind::mode, true) | std::views::reverse)
      finish(each, set_mode(each));
    for (const Change& each : of(ChangeKind::created, true) | std::views::reverse)
      (void)set_mode(each);  // the folder is there; one that is not was told of above
    std::ranges::stable_sort(applied_.done, {}, &Change::path);
    return std::move(applied_);
  }

 private:
  /// Names that are deleted and made anew as something else; the list is by path.
  void note_replaced(const std::vector<Change>& changes) {
    for (std::size_t i = 1; i < changes.size(); ++i)
      if (changes[i].path == changes[i - 1].path) replaced_.push_back(changes[i].path);
  }

  [[nodiscard]] bool is_in_the_way(const Change& change) const {
    std::string path = change.path;
    while (!replaced_.empty() && path != ".") {
      if (std::ranges::binary_search(replaced_, path)) return true;
      path = folder_of(path);
    }
    return false;
  }

  void remove(auto files, auto folders, bool in_the_way) {
    for (const Change& each : files)
      if (is_in_the_way(each) == in_the_way) finish(each, remove_file(each));
    for (const Change& each : folders | std::views::reverse)
      if (is_in_the_way(each) == in_the_way) finish(each, remove_folder(each));
  }

  /// Nothing when it was done.
  struct Refusal {
    std::string why;
    bool is_conflict = false;
    bool failed = false;
  };
  using Answer = std::optional<Refusal>;

  static Answer conflict(const char* why) { return Refusal{why, true, false}; }
  static Answer left(std::string why) { return Refusal{std::move(why), false, true}; }
  static Answer by_errno(const char* what) {
    return left(std::string(what) + ": " + ::strerrordesc_np(errno));
  }

  void finish(const Change& change, const Answer& answer) {
    if (!answer)
      applied_.done.push_back(change);
    else
      (answer->is_conflict ? applied_.conflicts : applied_.left)
          .push_back({change.path, answer->why, answer->failed});
  }

  /// The folder of the host that holds a name, and what is there under it.
  struct Spot {
    UniqueFd folder;
    std::string name;
    bool exists = false;
    struct stat facts{};
    bool changed = false;  ///< since the run began
  };

  Result<Spot> look(const Change& change) {
    const Place place = place_of(copy_, change.path);
    Spot spot;
    spot.folder = SBX_TRY(open_folder(place.layer->lower.get(), folder_of(place.path)));
    spot.name = name_of(place.path);
    spot.exists =
        ::fstatat(spot.folder.get(), spot.name.c_str(), &spot.facts, AT_SYMLINK_NOFOLLOW) == 0;
    // A change of the content or of the mode moves ctime, and nobody can set it back; a file that
    // was put in another's place brings its own.
    spot.changed = spot.exists && is_later(spot.facts.st_ctim, copy_.started);
    return spot;
  }

  Answer remove_file(const Change& change) {
    auto spot = look(change);
    if (!spot) return spot.error().errno_value == ENOENT ? Answer() : left(spot.error().text());
    if (!spot->exists) return std::nullopt;
    if (spot->changed) return conflict("it changed on the host since the run began");
    if (S_ISDIR(spot->facts.st_mode)) return conflict("it is a folder on the host now");
    if (::unlinkat(spot->folder.get(), spot->name.c_str(), 0) != 0)
      return by_errno("cannot delete");
    return std::nullopt;
  }

  Answer remove_folder(const Change& change) {
    auto spot = look(change);
    if (!spot) return spot.error().errno_value == ENOENT ? Answer() : left(spot.error().text());
    if (!spot->exists) return std::nullopt;
    if (::unlinkat(spot->folder.get(), spot->name.c_str(), AT_REMOVEDIR) == 0) return std::nullopt;
    if (errno == ENOTEMPTY || errno == EEXIST)
      return Refusal{"something in it stays", false, false};
    return by_errno("cannot delete");
  }

  Answer create_folder(const Change& change) {
    const auto spot = look(change);
    if (!spot) return left(spot.error().text());
    if (spot->exists && !S_ISDIR(spot->facts.st_mode))
      return conflict("something else is there on the host");
    if (const auto made = make_folder(spot->folder.get(), spot->name, owner_of(change, *spot));
        !made)
      return left(made.error().text());
    return std::nullopt;
  }

  Answer put(const Change& change) {
    const auto spot = look(change);
    if (!spot) return left(spot.error().text());
    if (change.change == ChangeKind::created && spot->exists)
      return conflict("it is on the host too, made since the run began");
    if (change.change == ChangeKind::modified && !spot->exists)
      return conflict("it was deleted on the host since the run began");
    if (spot->changed) return conflict("it changed on the host since the run began");
    const Place place = place_of(copy_, change.path);
    const Status done = change.type == FileType::link ? copy_link(place, change, *spot)
                                                      : copy_file(place, change, *spot);
    if (!done) return left(done.error().text());
    return std::nullopt;
  }

  Status copy_link(const Place& place, const Change& change, const Spot& spot) {
    const std::string text = SBX_TRY(read_link(place.layer->upper.get(), place.path));
    return put_link(text, spot.folder.get(), spot.name, owner_of(change, spot));
  }

  Status copy_file(const Place& place, const Change& change, const Spot& spot) {
    const UniqueFd source = SBX_TRY(open_private_file(place.layer->upper.get(), place.path));
    return put_file(source.get(), spot.folder.get(), spot.name, change.mode,
                    owner_of(change, spot));
  }

  /// By an O_PATH descriptor, so that no link is followed and a mode of 0000 is no hindrance.
  Answer set_mode(const Change& change) {
    const Place place = place_of(copy_, change.path);
    UniqueFd opened;
    if (place.path == ".") {
      opened = UniqueFd(::fcntl(place.layer->lower.get(), F_DUPFD_CLOEXEC, 3));
    } else {
      const auto spot = look(change);
      if (!spot) return left(spot.error().text());
      if (change.change == ChangeKind::mode && spot->changed && change.type != FileType::folder)
        return conflict("it changed on the host since the run began");
      opened = UniqueFd(
          ::openat(spot->folder.get(), spot->name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    struct stat facts{};
    if (!opened.valid() || ::fstat(opened.get(), &facts) != 0)
      return by_errno("cannot set the mode");
    if (type_of(facts.st_mode) != change.type)
      return conflict("something else is there on the host");
    const std::string name = "/proc/self/fd/" + std::to_string(opened.get());
    // A folder of a team keeps the bit that hands its group on.
    const mode_t kept = S_ISDIR(facts.st_mode) ? facts.st_mode & 07000 : 0;
    if (::chmod(name.c_str(), kept | (change.mode & 0777)) != 0)
      return by_errno("cannot set the mode");
    return std::nullopt;
  }

  /// Of the file that is replaced; of a new one, of the workspace.
  Owner owner_of(const Change& change, const Spot& spot) {
    if (spot.exists) return {spot.facts.st_uid, spot.facts.st_gid};
    struct stat facts{};
    (void)::fstat(place_of(copy_, change.path).layer->lower.get(), &facts);  // an open descriptor
    return {facts.st_uid, facts.st_gid};
  }

  const Copy& copy_;
  std::vector<std::string> replaced_;
  Applied applied_;
};

std::string reason_against(const Copy& copy, const Change& change,
                           const std::vector<std::string>& patterns,
                           const std::vector<std::string>& policy_files) {
  if (change.type == FileType::fifo || change.type == FileType::socket ||
      change.type == FileType::device)
    return change.change == ChangeKind::deleted ? std::string() : describe(change.type);
  if (std::ranges::find(policy_files, join(copy.folder, change.path)) != policy_files.end())
    return "a policy file of this run";
  if (is_protected(change.path, change.type) && !is_named(patterns, change.path))
    return "a protected name: --apply=" + change.path + " names it";
  return {};
}

}  // namespace

Selection select(const Copy& copy, const ChangeSet& changes,
                 const std::vector<std::string>& patterns,
                 const std::vector<std::string>& policy_files) {
  Selection selection;
  for (const Left& each : changes.hidden)
    if (patterns.empty() || matches_any(patterns, each.path)) selection.left.push_back(each);
  for (const Change& change : changes.changes) {
    if (!patterns.empty() && !matches_any(patterns, change.path)) continue;
    std::string why = reason_against(copy, change, patterns, policy_files);
    if (why.empty())
      selection.changes.push_back(change);
    else
      selection.left.push_back({change.path, std::move(why)});
  }
  return selection;
}

Result<Applied> apply(const Copy& copy, const Selection& selection) {
  if (copy.layers.empty() || !copy.layers.front().lower.valid()) return Applied{};
  while (::flock(copy.layers.front().lower.get(), LOCK_EX) != 0)
    if (errno != EINTR)
      return fail_errno(ErrorKind::host, "cannot-lock", "cannot lock the workspace for --apply");
  Applied applied = Application(copy).run(selection.changes);
  (void)::flock(copy.layers.front().lower.get(), LOCK_UN);  // closing it would do the same
  applied.left.insert(applied.left.begin(), selection.left.begin(), selection.left.end());
  return applied;
}

}  // namespace sbx::workspace
