#include "workspace/apply.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/held.hpp"
#include "workspace/put.hpp"
#include "workspace/replaced_files.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

class Application {
 public:
  Application(const Copy& copy, Applying how) : copy_(copy), how_(std::move(how)) {}

  std::vector<Left> conflicts(const std::vector<Change>& changes) {
    note_replaced(changes);
    for (const Change& each : changes) {
      // No conflict: the file in its place is removed first.
      if (each.change == ChangeKind::created && is_in_the_way(each)) continue;
      const auto spot = look(each);
      if (!spot) continue;  // the directory is new, or gone: reported when it is applied
      const auto why = conflict_of(each, *spot);
      if (why && !is_done(each, *spot)) finish(each, conflict(*why));
    }
    return std::move(applied_.conflicts);
  }

  /// What is in the way goes first; the other deletions come after the creations, so that a file
  /// that was moved is never in neither place, and because ext4 looks for long for an inode that
  /// was not freed a moment ago. Modes last: one may close the directory that others are written to.
  Applied run(const std::vector<Change>& changes) {
    const auto of = [&](ChangeKind kind, bool folders) {
      return changes | std::views::filter([kind, folders](const Change& each) {
               return each.change == kind && (each.type == FileType::folder) == folders;
             });
    };
    note_replaced(changes);
    remove(of(ChangeKind::deleted, false), of(ChangeKind::deleted, true), true);
    for (const Change& each : of(ChangeKind::mode, true))
      if ((each.mode & 0300) == 0300 && !stops())
        (void)set_mode(each);  // opened for what follows; reported below
    each_of(of(ChangeKind::created, true), &Application::create_folder);
    each_of(of(ChangeKind::created, false), &Application::put);
    each_of(of(ChangeKind::modified, false), &Application::put);
    remove(of(ChangeKind::deleted, false), of(ChangeKind::deleted, true), false);
    each_of(of(ChangeKind::mode, false), &Application::set_mode);
    each_of(of(ChangeKind::mode, true) | std::views::reverse, &Application::set_mode);
    for (const Change& each : of(ChangeKind::created, true) | std::views::reverse)
      (void)set_mode(each);  // the directory is there; one that is not was reported above
    std::ranges::stable_sort(applied_.done, {}, &Change::path);
    std::ranges::stable_sort(applied_.conflicts, {}, &Left::path);
    std::ranges::stable_sort(applied_.left, {}, &Left::path);
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
    const auto now = std::views::filter(
        [this, in_the_way](const Change& each) { return is_in_the_way(each) == in_the_way; });
    each_of(files | now, &Application::remove_file);
    (void)old_.free_all();  // NFS has a name in the directory for each deleted file that is open
    each_of(folders | std::views::reverse | now, &Application::remove_folder);
  }

  /// Nothing when it was done.
  struct Refusal {
    std::string why;
    bool is_conflict = false;
    bool failed = false;
  };
  using Answer = std::optional<Refusal>;

  [[nodiscard]] bool stops() {
    applied_.stopped = applied_.stopped || (how_.stop && how_.stop());
    return applied_.stopped;
  }

  void each_of(auto changes, Answer (Application::*step)(const Change&)) {
    for (const Change& each : changes)
      finish(each, stops() ? Refusal{"interrupted before it was its turn", false, false}
                           : (this->*step)(each));
  }

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

  /// A name on the host: its directory, and the file that has the name.
  struct Spot {
    UniqueFd folder;
    std::string name;
    bool exists = false;
    struct stat facts{};
    bool changed = false;  ///< since the run began
  };

  Result<Spot> look(const Change& change) {
    const LayerPath place = place_of(copy_, change.path);
    Spot spot;
    spot.folder = SBX_TRY(open_folder(place.layer->lower.get(), folder_of(place.path)));
    SBX_TRY(check_same(folder_of(change.path), spot.folder.get()));
    spot.name = name_of(place.path);
    spot.exists =
        ::fstatat(spot.folder.get(), spot.name.c_str(), &spot.facts, AT_SYMLINK_NOFOLLOW) == 0;
    if (!spot.exists) return spot;
    struct stat before = spot.facts;
    const auto ours = relinked_.find({before.st_dev, before.st_ino});
    if (ours != relinked_.end() && same_time(ours->second.after, before.st_ctim))
      before.st_ctim = ours->second.before;
    spot.changed = changed_on_host(copy_, change.path, before);
    return spot;
  }

  /// Another user's directory may hold another one under this name than a moment ago.
  Status check_same(const std::string& path, int folder) {
    const auto now = held::identity_of(folder);
    const auto first = directories_.try_emplace(path, now.value_or(held::Identity{})).first;
    if (now && first->second == *now) return {};
    return fail(Error{.kind = ErrorKind::host,
                      .code = "replaced",
                      .message = "another process replaced its directory"});
  }

  static bool same_time(const timespec& one, const timespec& other) {
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
  }

  /// Taking one name of a file away stamps the file: its other names have not changed for that.
  class OtherNames {
   public:
    OtherNames(Application& application, const Spot& spot)
        : application_(application), was_(spot.facts) {
      if (spot.exists && !S_ISDIR(was_.st_mode) && was_.st_nlink > 1 && !spot.changed)
        file_ = UniqueFd(
            ::openat(spot.folder.get(), spot.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    OtherNames(const OtherNames&) = delete;
    OtherNames& operator=(const OtherNames&) = delete;
    ~OtherNames() {
      struct stat now{};
      if (!file_.valid() || ::fstat(file_.get(), &now) != 0 || now.st_ino != was_.st_ino) return;
      auto& known = application_.relinked_[{now.st_dev, now.st_ino}];
      // What was stamped by an earlier name keeps the time that it had first.
      if (!same_time(known.after, was_.st_ctim)) known.before = was_.st_ctim;
      known.after = now.st_ctim;
    }

   private:
    Application& application_;
    const struct stat was_;
    UniqueFd file_;
  };

  /// What stands against a change now; nothing when it can be done.
  static std::optional<const char*> conflict_of(const Change& change, const Spot& spot) {
    const bool is_folder = spot.exists && S_ISDIR(spot.facts.st_mode);
    switch (change.change) {
      case ChangeKind::deleted:
        if (!spot.exists || change.type == FileType::folder) return std::nullopt;
        if (is_folder) return "a directory on the host now";
        break;
      case ChangeKind::created:
        if (!spot.exists || (is_folder && change.type == FileType::folder)) return std::nullopt;
        if (change.type == FileType::folder) return "something else is there on the host";
        return "created on the host too since the run began";
      case ChangeKind::modified:
        if (!spot.exists) return "deleted on the host since the run began";
        break;
      case ChangeKind::mode:
        if (!spot.exists) return "deleted on the host since the run began";
        if (type_of(spot.facts.st_mode) != change.type)
          return "something else is there on the host";
        if (is_folder) return std::nullopt;
        break;
    }
    if (spot.changed) return "changed on the host since the run began; left as is";
    return std::nullopt;
  }

  /// True if a killed sbx, or the user, made this change before.
  bool is_done(const Change& change, const Spot& spot) const {
    if (!spot.exists || type_of(spot.facts.st_mode) != change.type) return false;
    if (change.type == FileType::link) {
      const auto here = read_link(spot.folder.get(), spot.name);
      const auto wanted = link_content(copy_, change);
      return change.change != ChangeKind::mode && here && wanted && *here == *wanted;
    }
    if (change.type != FileType::file || (spot.facts.st_mode & 0777) != (change.mode & 0777))
      return false;
    if (change.change == ChangeKind::mode) return true;
    if (static_cast<std::uint64_t>(spot.facts.st_size) != change.bytes) return false;
    const auto here = open_file(spot.folder.get(), spot.name);
    const auto wanted = open_content(copy_, change);
    return here && wanted && same_content(here->get(), wanted->get(), spot.facts.st_size);
  }

  static bool is_gone(const Error& error) {
    return error.errno_value == ENOENT || error.errno_value == ENOTDIR;
  }

  /// A directory in place of the file that goes, or the other way round, from an earlier application.
  bool is_replaced_already(const Change& change, const Spot& spot) const {
    return S_ISDIR(spot.facts.st_mode) != (change.type == FileType::folder) &&
           std::ranges::binary_search(replaced_, change.path);
  }

  Answer remove_file(const Change& change) {
    const auto spot = look(change);
    if (!spot) return is_gone(spot.error()) ? Answer() : left(spot.error().text());
    if (!spot->exists || is_replaced_already(change, *spot)) return std::nullopt;
    if (const auto why = conflict_of(change, *spot)) return conflict(*why);
    const OtherNames others(*this, *spot);
    old_.keep(spot->folder.get(), spot->name, spot->facts);
    if (!held::remove_file(spot->folder.get(), spot->name)) return by_errno("cannot delete");
    return std::nullopt;
  }

  Answer remove_folder(const Change& change) {
    const auto spot = look(change);
    if (!spot) return is_gone(spot.error()) ? Answer() : left(spot.error().text());
    if (!spot->exists || is_replaced_already(change, *spot)) return std::nullopt;
    if (!S_ISDIR(spot->facts.st_mode)) return conflict("it is no directory on the host now");
    if (held::remove_directory(spot->folder.get(), spot->name)) return std::nullopt;
    if (errno == ENOTEMPTY || errno == EEXIST)
      return Refusal{"something in it stays", false, false};
    return by_errno("cannot delete");
  }

  Answer create_folder(const Change& change) {
    const auto spot = look(change);
    if (!spot) return left(spot.error().text());
    if (const auto why = conflict_of(change, *spot)) return conflict(*why);
    const auto made = make_folder(spot->folder.get(), spot->name, owner_of(change, *spot));
    if (!made) return left(made.error().text());
    if (const auto identity = held::identity_of(made->get())) directories_[change.path] = *identity;
    return std::nullopt;
  }

  Answer put(const Change& change) {
    const auto spot = look(change);
    if (!spot) return left(spot.error().text());
    if (const auto why = conflict_of(change, *spot))
      return is_done(change, *spot) ? Answer() : conflict(*why);
    return replace(change, *spot);
  }

  /// A new inode under the name.
  Answer replace(const Change& change, const Spot& spot) {
    clean(spot, folder_of(change.path));
    const OtherNames others(*this, spot);
    const Expected expected{
        .what = spot.exists ? Expected::What::this_one : Expected::What::nothing,
        .facts = spot.facts};
    if (spot.exists) old_.keep(spot.folder.get(), spot.name, spot.facts);
    Status done = copy(change, spot, expected);
    if (!done && is_full(done.error()) && old_.free_all()) done = copy(change, spot, expected);
    if (done) return std::nullopt;
    if (done.error().code == "replaced") return conflict("it changed on the host just now");
    return left(done.error().text());
  }

  /// Removes temporary files of a killed sbx, once for each directory.
  void clean(const Spot& spot, const std::string& folder) {
    if (cleaned_.insert(folder).second) remove_temporaries(spot.folder.get());
  }

  static bool is_full(const Error& error) {
    return error.errno_value == ENOSPC || error.errno_value == EDQUOT;
  }

  Status copy(const Change& change, const Spot& spot, const Expected& expected) {
    return change.type == FileType::link ? copy_link(change, spot, expected)
                                         : copy_file(change, spot, expected);
  }

  Status copy_link(const Change& change, const Spot& spot, const Expected& expected) {
    const std::string text = SBX_TRY(link_content(copy_, change));
    return put_link(text, spot.folder.get(), spot.name, owner_of(change, spot), expected);
  }

  Status copy_file(const Change& change, const Spot& spot, const Expected& expected) {
    const UniqueFd source =
        SBX_TRY(change.change == ChangeKind::mode ? open_file(spot.folder.get(), spot.name)
                                                  : open_content(copy_, change));
    return put_file(source.get(), spot.folder.get(), spot.name, change.mode, owner_of(change, spot),
                    expected);
  }

  /// By an O_PATH descriptor, so that no link is followed and a mode of 0000 is no hindrance.
  Answer set_mode(const Change& change) {
    const LayerPath place = place_of(copy_, change.path);
    UniqueFd opened;
    held::Identity expected;
    if (place.path == ".") {
      opened = UniqueFd(::fcntl(place.layer->lower.get(), F_DUPFD_CLOEXEC, 3));
    } else {
      const auto spot = look(change);
      if (!spot) return left(spot.error().text());
      if (change.change == ChangeKind::mode)
        if (const auto why = conflict_of(change, *spot))
          return is_done(change, *spot) ? Answer() : conflict(*why);
      // The mode is the file's, under whatever name; the program changed it under this one.
      if (S_ISREG(spot->facts.st_mode) && spot->facts.st_nlink > 1) return replace(change, *spot);
      opened = UniqueFd(
          ::openat(spot->folder.get(), spot->name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      // A directory that was made here a while ago: its name may lead to another one now.
      const auto known = directories_.find(change.path);
      expected = known == directories_.end() ? held::identity_of(spot->facts) : known->second;
    }
    struct stat facts{};
    if (!opened.valid() || ::fstat(opened.get(), &facts) != 0)
      return by_errno("cannot set the mode");
    const bool is_other = place.path != "." && held::identity_of(facts) != expected;
    if (is_other || type_of(facts.st_mode) != change.type)
      return conflict("something else is there on the host");
    // A directory keeps its set-group-ID bit, which gives its group to new files.
    const mode_t kept = S_ISDIR(facts.st_mode) ? facts.st_mode & 07000 : 0;
    if (!held::set_mode(opened.get(), kept | (change.mode & 0777)))
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
  Applying how_;
  std::vector<std::string> replaced_;
  std::unordered_map<std::string, held::Identity> directories_;  ///< by path, as first seen or made
  std::unordered_set<std::string> cleaned_;
  ReplacedFiles old_;
  struct Stamped {
    timespec before{};
    timespec after{};
  };
  std::map<std::pair<dev_t, ino_t>, Stamped> relinked_;
  Applied applied_;
};

}  // namespace

Result<Applied> apply(const Copy& copy, const Selection& selection, const Applying& how) {
  if (copy.layers.empty() || !copy.layers.front().lower.valid()) return Applied{};
  const int folder = copy.layers.front().lower.get();
  if (const Status locked = lock_folder(folder, {.begins = how.waits, .stop = how.stop}); !locked) {
    if (locked.error().code != "stopped") return std::unexpected(locked.error());
    Applied nothing{.left = selection.left, .stopped = true};
    for (const Change& each : selection.changes)
      nothing.left.push_back({each.path, locked.error().message});
    return nothing;
  }
  SBX_TRY(check_in_place(copy));  // after the wait, which may have been long
  Applied applied = Application(copy, how).run(selection.changes);
  (void)::flock(folder, LOCK_UN);  // closing it would do the same
  applied.left.insert(applied.left.begin(), selection.left.begin(), selection.left.end());
  return applied;
}

std::vector<Left> conflicts_now(const Copy& copy, const std::vector<Change>& changes) {
  if (copy.layers.empty() || !copy.layers.front().lower.valid()) return {};
  return Application(copy, {}).conflicts(changes);
}

}  // namespace sbx::workspace
