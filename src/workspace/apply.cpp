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
#include <span>
#include <unordered_set>
#include <utility>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "workspace/conflicts.hpp"
#include "workspace/host_names.hpp"
#include "workspace/linked_files.hpp"
#include "workspace/put.hpp"
#include "workspace/replaced_files.hpp"
#include "workspace/staging.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

/// The directory is gone, or something else has its name: a link is not followed.
bool is_gone(const Error& error) {
  return error.errno_value == ENOENT || error.errno_value == ENOTDIR || error.errno_value == ELOOP;
}

bool same_time(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

class Application {
 public:
  Application(const Copy& copy, const Links& links, Applying how)
      : copy_(copy),
        how_(std::move(how)),
        names_(copy),
        conflicts_(copy, sys::file_mode_mask()),
        files_(copy, links, names_),
        notes_(Notes::begin(how_.state_directory,
                            copy.stored ? Notes::Content::elsewhere : Notes::Content::here_only)),
        staging_(copy, notes_) {}

  std::vector<Left> conflicts(const std::vector<Change>& changes) {
    plan(changes);
    return std::move(applied_.conflicts);
  }

  Applied run(const Selection& selection) {
    for (const Left& each : selection.left) spared_.insert(each.path);
    const std::vector<Change>& changes = selection.changes;
    open_directories(changes);
    const std::size_t opened = modes_set_;
    plan(changes);
    applied_.already = applied_.done.size() - std::min(applied_.done.size(), opened);
    if (may_go_on()) stage();
    if (may_go_on()) {
      notes_.about_to_replace();
      replace_all();
      set_modes_of_files();
      remove_all();
      set_modes_of_directories();
    } else {
      leave_rest(applied_.stopped ? "interrupted before it was its turn"
                                  : "nothing was applied, because something can't be written");
    }
    staging_.clear();
    sort();
    return std::move(applied_);
  }

 private:
  // --- what is to be done

  /// Directories that the program opened: what follows is written to them.
  void open_directories(const std::vector<Change>& changes) {
    for (const Change& each : changes)
      if (each.change == ChangeKind::mode && is_directory(each) && (each.mode & 0300) == 0300 &&
          !stops() && may_open(each))
        (void)set_mode(each);  // reported at the end
  }

  bool may_open(const Change& change) {
    if (place_of(copy_, change.path).path == ".") return true;
    const auto spot = names_.look(change.path);
    return spot && spot->exists && !conflicts_.of_directory(change, spot->facts);
  }

  void plan(const std::vector<Change>& changes) {
    conflicts_.note(changes);
    steps_.reserve(changes.size());
    for (const Change& change : changes) {
      Step& step = steps_.emplace_back(Step{.change = &change});
      if (change.change == ChangeKind::created && is_in_new(change.path))
        note_new(change);
      else
        look_at(step);
      files_.note(step);
    }
    hold_repositories();
  }

  /// Refs, objects and the index of a git repository fit together only as a whole: if a part of it
  /// can't be applied, nothing of it is.
  void hold_repositories() {
    std::unordered_set<std::string> held;
    for (const auto* const list : {&applied_.conflicts, &applied_.left})
      for (const Left& each : *list) held.insert(repository_of(each.path));
    held.erase("");
    if (held.empty()) return;
    for (Step& step : steps_)
      if (!step.is_over && held.contains(repository_of(step.change->path)))
        conflict(step, std::string(kHeldBack));
  }

  /// "sub/.git" of "sub/.git/HEAD"; empty for a path that is not below a .git.
  static std::string repository_of(std::string_view path) {
    constexpr std::string_view kGit = ".git/";
    for (auto at = path.find(kGit); at != path.npos; at = path.find(kGit, at + 1))
      if (at == 0 || path[at - 1] == '/') return std::string(path.substr(0, at + kGit.size() - 1));
    return {};
  }

  void look_at(Step& step) {
    const Change& change = *step.change;
    if (conflicting_.contains(directory_of(change.path)) && change.change == ChangeKind::created)
      return conflict(step, kOtherDirectory);
    auto spot = names_.look(change.path);
    if (!spot) {
      if (!is_gone(spot.error())) return failed(step, spot.error().text());
      if (change.change == ChangeKind::deleted) return done(step);
      return conflict(step, "its directory is no longer there on the host");
    }
    if (change.change == ChangeKind::created && is_in_other_directory(change.path, *spot))
      return conflict(step, kOtherDirectory);
    step.exists = spot->exists;
    step.before = spot->facts;
    const bool is_there = spot->exists;
    if (change.change == ChangeKind::deleted && (!is_there || conflicts_.is_replaced_already(step)))
      return done(step);
    if (files_.is_linked_already(step)) return done(step);
    const auto why = files_.of(change).is_split ? std::optional(kSplit) : conflicts_.of(step);
    if (why && conflicts_.is_done(step, *spot)) {
      files_.note_done(change);
      return done(step);
    }
    if (why) return conflict(step, *why);
    if (change.change == ChangeKind::created && is_directory(change)) {
      if (is_there && S_ISDIR(step.before.st_mode)) return done(step);  // its mode comes last
      note_new(change);
    }
    if (change.change == ChangeKind::mode && conflicts_.is_done(step, *spot)) {
      files_.note_done(change);
      return done(step);
    }
    if (change.change == ChangeKind::mode && ::geteuid() != 0 &&
        step.before.st_uid != ::geteuid()) {
      errno = EPERM;
      failed(step, by_errno("cannot set the mode"));
    }
  }

  /// The user moved another directory there, or made one.
  [[nodiscard]] bool is_in_other_directory(const std::string& path, const Spot& spot) const {
    const LayerPath place = place_of(copy_, path);
    struct stat facts{};
    return ::fstat(spot.directory, &facts) != 0 ||
           is_other_directory(*place.layer, directory_of(place.path), facts);
  }

  void note_new(const Change& change) {
    if (is_directory(change)) new_.insert(change.path);
  }
  [[nodiscard]] bool is_in_new(const std::string& path) const {
    return new_.contains(directory_of(path));
  }

  /// The identity of a directory that was opened or made here; else of what was just found there.
  [[nodiscard]] held::Identity expected(const std::string& path, const struct stat& found) const {
    if (const auto made = staging_.identity_of(path)) return *made;
    return names_.first(path).value_or(held::identity_of(found));
  }

  // --- new content

  /// A change of the mode of a file with several names: the program changed it under one of them.
  static bool is_mode_of_one_name(const Step& step) {
    return step.change->change == ChangeKind::mode && S_ISREG(step.before.st_mode) &&
           step.before.st_nlink > 1;
  }
  [[nodiscard]] bool has_content(const Step& step) const {
    return step.change->change == ChangeKind::created ||
           step.change->change == ChangeKind::modified ||
           step.change->change == ChangeKind::links || is_mode_of_one_name(step) ||
           (step.change->change == ChangeKind::mode && files_.is_shared(*step.change));
  }

  void stage() {
    for (Step& step : steps_) {
      if (step.is_over || !has_content(step)) continue;
      if (stops()) return;
      if (const Status staged = stage(step); !staged) {
        failed(step, staged.error().text());
        if (is_full(staged.error())) return;
      }
    }
  }

  static bool is_full(const Error& error) {
    return error.errno_value == ENOSPC || error.errno_value == EDQUOT;
  }

  Status stage(const Step& step) {
    const Change& change = *step.change;
    const UniqueFd shared = SBX_TRY(files_.to_share(step));
    if (shared.valid() && SBX_TRY(staging_.add_name(change, shared.get()))) return {};
    const std::optional<Owner> owner =
        SBX_TRY(files_.owner(step, [this](const Step& one) { return owner_of(one); }));
    if (is_directory(change)) return staging_.add_directory(change, owner);
    if (change.type == FileType::link)
      return staging_.add_link(change, SBX_TRY(link_content(copy_, change)), owner);
    const UniqueFd source = SBX_TRY(names_.content_of(change));
    return staging_.add_file(change, source.get(), mode_of(step), owner, files_.of(change).file);
  }

  /// Who may write to the file of another account may replace it too, and only root can give the
  /// new one to that account.
  Result<bool> becomes_callers(const Step& step) {
    if (!step.replaces_file() || ::geteuid() == 0 || step.before.st_uid == ::geteuid())
      return false;
    const Spot spot = SBX_TRY(names_.look(step.change->path));
    const auto file = held::open_name(spot.directory, spot.name, O_PATH);
    return file && ::faccessat(file->get(), "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
  }
  /// Takes the owner of the file that is replaced; a new file has the one of its directory.
  Result<std::optional<Owner>> owner_of(const Step& step) {
    if (staging_.is_in_new(*step.change)) return staging_.owner_in_new(*step.change);
    if (SBX_TRY(becomes_callers(step))) return Owner{::geteuid(), step.before.st_gid};
    if (step.replaces_file()) return Owner{step.before.st_uid, step.before.st_gid};
    struct stat facts{};
    const Spot spot = SBX_TRY(names_.look(step.change->path));
    (void)::fstat(spot.directory, &facts);  // an open descriptor
    return owner_in(facts);
  }

  [[nodiscard]] mode_t mode_of(const Step& step) const {
    const bool has_mode = step.replaces_file() && S_ISREG(step.before.st_mode);
    return conflicts_.permissions(
        *step.change,
        files_.mode_before(*step.change).value_or(has_mode ? step.before.st_mode : 0));
  }

  // --- names

  /// What replaces something of another kind comes when it is known that everything else could be
  /// done.
  void replace_all() {
    for (Step& step : steps_) {
      const Change& change = *step.change;
      if (step.is_over || !has_content(step) || conflicts_.is_in_replaced(change.path)) continue;
      if (stops()) return leave(step, "interrupted before it was its turn");
      if (staging_.is_in_new(change))
        finish_in_new(step);
      else
        put(step);
    }
    (void)old_.free_all();  // NFS has a name in the directory for each deleted file that is open
  }

  /// It came with its directory.
  void finish_in_new(Step& step) {
    if (conflicting_.contains(directory_of(step.change->path))) {
      conflict(step, kOtherDirectory);
      return;
    }
    done(step);
    tell_dropped(*step.change, mode_of(step));
  }

  void put(Step& step) {
    const Change& change = *step.change;
    const auto spot = names_.look(change.path);
    if (!spot) return failed(step, spot.error().text());
    const bool is_others = becomes_callers(step).value_or(false);
    if (!is_as_it_was(step, *spot)) return conflict(step, "it changed on the host just now");
    const auto waiting = staging_.waiting(change);
    if (!waiting) return failed(step, waiting.error().text());
    const held::Name place{.directory = spot->directory, .name = spot->name};
    if (spot->exists) old_.keep(spot->directory, spot->name, spot->facts);
    bool is_put = false;
    if (!spot->exists) {
      is_put = held::rename_to_free(*waiting, place);
      if (!is_put && errno == EEXIST) return conflict(step, "it changed on the host just now");
    }
    // A file system without RENAME_NOREPLACE: what was just looked at has to do.
    if (!is_put && (spot->exists || errno == EINVAL)) is_put = held::rename(*waiting, place);
    if (!is_put) return failed(step, by_errno("cannot write"));
    done(step);
    if (!is_directory(change) && change.type != FileType::link) tell_dropped(change, mode_of(step));
    if (is_others) tell_partly(change, "applied, and yours now: it belonged to another account");
  }

  /// A name that was taken from a file with several stamps the file: then the time of its content
  /// has to do.
  static bool is_as_it_was(const Step& step, const Spot& spot) {
    if (!step.exists || !spot.exists) return step.exists == spot.exists;
    const struct stat& was = step.before;
    const struct stat& now = spot.facts;
    return was.st_ino == now.st_ino && was.st_dev == now.st_dev &&
           (was.st_nlink > 1 ? same_time(was.st_mtim, now.st_mtim)
                             : same_time(was.st_ctim, now.st_ctim));
  }

  // --- deletions

  void remove_all() {
    if (is_all_well()) exchange_all();
    if (is_all_well())
      remove(steps_);
    else
      leave_rest("left, because not everything else could be applied");
  }
  [[nodiscard]] bool is_all_well() const { return may_go_on() && applied_.conflicts.empty(); }

  /// Files, then directories, the inner ones first.
  void remove(std::span<Step> steps) {
    const auto is_due = [](const Step& step) {
      return !step.is_over && step.change->change == ChangeKind::deleted;
    };
    for (Step& step : steps)
      if (is_due(step) && !is_directory(*step.change)) remove_file(step);
    (void)old_.free_all();
    for (Step& step : steps | std::views::reverse)
      if (is_due(step)) remove_directory(step);
  }
  /// The changes stand in the order of their paths.
  [[nodiscard]] std::span<Step> inside(const std::string& path) {
    const std::string above = path + "/";
    const auto path_of = [](const Step& step) -> const std::string& { return step.change->path; };
    const auto begin = std::ranges::lower_bound(steps_, above, {}, path_of);
    const auto end = std::ranges::find_if_not(
        begin, steps_.end(), [&](const Step& step) { return path_of(step).starts_with(above); });
    return {begin, end};
  }

  void remove_file(Step& step) {
    if (stops()) return leave(step, "interrupted before it was its turn");
    const auto spot = names_.look(step.change->path);
    if (!spot) return is_gone(spot.error()) ? done(step) : failed(step, spot.error().text());
    if (!spot->exists) return done(step);
    if (!is_as_it_was(step, *spot)) return conflict(step, "it changed on the host just now");
    old_.keep(spot->directory, spot->name, spot->facts);
    if (!held::remove_file(spot->directory, spot->name))
      return failed(step, by_errno("cannot delete"));
    done(step);
  }

  void remove_directory(Step& step) {
    if (stops()) return leave(step, "interrupted before it was its turn");
    const auto spot = names_.look(step.change->path);
    if (!spot) return is_gone(spot.error()) ? done(step) : failed(step, spot.error().text());
    if (!spot->exists || held::remove_directory(spot->directory, spot->name)) return done(step);
    if (errno == ENOTEMPTY || errno == EEXIST) return leave_filled(step, *spot);
    failed(step, by_errno("cannot delete"));
  }

  /// A conflict, unless everything in it stays by a rule: a name that is hidden, protected or not
  /// meant.
  void leave_filled(Step& step, const Spot& spot) {
    const std::string& path = step.change->path;
    const auto directory = open_directory(spot.directory, spot.name);
    const auto entries =
        directory ? read_directory(directory->get()) : std::unexpected(directory.error());
    if (!entries || entries->empty()) return conflict(step, "the directory is not empty");
    const auto stays = [&](const auto& entry) {
      return spared_.contains(path + "/" + entry.name) ||
             (copy_.hidden &&
              copy_.hidden->hides(copy_.directory + "/" + path, entry.name) != nullptr);
    };
    const auto other = std::ranges::find_if_not(*entries, stays);
    if (other != entries->end())
      return conflict(step,
                      "the directory is not empty: '" + other->name + "' is in it on the host");
    spared_.insert(path);
    leave(step, "the directory is not empty: '" + entries->front().name + "' stays in it");
  }

  /// Files that become directories, and directories that become files.
  void exchange_all() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      const Change& change = *step.change;
      if (step.is_over || !has_content(step)) continue;
      if (stops()) return leave(step, "interrupted before it was its turn");
      if (staging_.is_in_new(change)) {
        finish_in_new(step);
        continue;
      }
      // The deletion of the same name stands before it.
      if (is_directory(change) && i > 0 && exchange(steps_[i - 1], step)) continue;
      remove(inside(change.path));
      if (i > 0 && steps_[i - 1].change->path == change.path) remove({&steps_[i - 1], 1});
      step.exists = false;
      put(step);
      if (step.is_over && is_directory(change) && !is_put(change)) conflicting_.insert(change.path);
    }
  }

  /// A directory takes the name of a file in one step; the file goes with what is left of the
  /// staging.
  bool exchange(Step& deleted, Step& created) {
    const auto spot = names_.look(created.change->path);
    if (deleted.change->path != created.change->path || deleted.is_over || !spot ||
        !is_as_it_was(deleted, *spot))
      return false;
    const auto waiting = staging_.waiting(*created.change);
    if (!waiting || !held::exchange(*waiting, {.directory = spot->directory, .name = spot->name}))
      return false;
    done(deleted);
    done(created);
    return true;
  }
  [[nodiscard]] bool is_put(const Change& change) const {
    return !applied_.done.empty() && applied_.done.back().path == change.path &&
           applied_.done.back().change == change.change;
  }

  // --- modes

  void set_modes_of_files() {
    for (Step& step : steps_) {
      if (step.is_over || step.change->change != ChangeKind::mode || is_directory(*step.change))
        continue;
      if (stops()) return leave(step, "interrupted before it was its turn");
      settle(step, set_mode(*step.change));
    }
  }

  /// Last, children first: one may close the directory that others are written to.
  void set_modes_of_directories() {
    names_.close();
    for (Step& step : steps_ | std::views::reverse) {
      const Change& change = *step.change;
      if (!is_directory(change)) continue;
      if (change.change == ChangeKind::mode && !step.is_over) {
        if (stops()) return leave(step, "interrupted before it was its turn");
        settle(step, set_mode(change));
      }
      if (change.change == ChangeKind::created && !conflicting_.contains(change.path))
        (void)set_mode(change);  // one that is not there was reported
    }
  }

  void settle(Step& step, const std::optional<Left>& answer) {
    if (!answer) return done(step);
    if (answer->failed) return failed(step, answer->why);
    conflict(step, answer->why);
  }

  /// By an O_PATH descriptor, so that no link is followed and a mode of 0000 is not a hindrance.
  std::optional<Left> set_mode(const Change& change) {
    const LayerPath place = place_of(copy_, change.path);
    const auto refusal = [&](const std::string& why) {
      return Left{.path = change.path, .why = why, .failed = true};
    };
    UniqueFd opened;
    std::optional<held::Identity> wanted;
    if (place.path == ".") {
      opened = UniqueFd(::fcntl(place.layer->lower.get(), F_DUPFD_CLOEXEC, 3));
    } else {
      const auto spot = names_.look(change.path);
      if (!spot) return refusal(spot.error().text());
      if (auto file = held::open_name(spot->directory, spot->name, O_PATH))
        opened = std::move(*file);
      wanted = expected(change.path, spot->facts);
    }
    struct stat facts{};
    if (!opened.valid() || ::fstat(opened.get(), &facts) != 0)
      return refusal(by_errno("cannot set the mode"));
    if (type_of(facts.st_mode) != change.type || (wanted && *wanted != held::identity_of(facts)))
      return Left{.path = change.path, .why = "something else is there on the host"};
    // A directory keeps its set-group-ID bit, which gives its group to new files.
    const mode_t kept = S_ISDIR(facts.st_mode) ? facts.st_mode & 07000 : 0;
    const mode_t mode =
        kept |
        conflicts_.permissions(change, change.change == ChangeKind::created ? 0 : facts.st_mode);
    if ((facts.st_mode & 07777) != mode) {
      if (!held::set_mode(opened.get(), mode)) return refusal(by_errno("cannot set the mode"));
      ++modes_set_;
    }
    tell_dropped(change, mode);
    return std::nullopt;
  }

  /// Says which bits of a mode were not taken; that a new file has no more than the umask leaves
  /// goes without saying.
  void tell_dropped(const Change& change, mode_t now) {
    if ((change.mode & 07000 & ~now) != 0)
      tell_partly(change, "applied without its set-uid, set-gid or sticky bit");
    if (change.change == ChangeKind::mode && (change.mode & 0777 & ~now) != 0)
      tell_partly(change, "applied without the permissions that the umask takes");
  }

  // --- answers

  [[nodiscard]] bool stops() {
    applied_.stopped = applied_.stopped || (how_.stop && how_.stop());
    return applied_.stopped;
  }
  [[nodiscard]] bool may_go_on() const { return !applied_.stopped && !applied_.has_failures(); }

  static std::string by_errno(const char* what) {
    return std::string(what) + ": " + ::strerrordesc_np(errno);
  }

  void done(Step& step) {
    step.is_over = true;
    applied_.done.push_back(*step.change);
  }
  void conflict(Step& step, std::string why) {
    step.is_over = true;
    if (is_directory(*step.change)) conflicting_.insert(step.change->path);
    applied_.conflicts.push_back({.path = step.change->path, .why = std::move(why)});
  }
  void failed(Step& step, std::string why) {
    step.is_over = true;
    if (is_directory(*step.change)) conflicting_.insert(step.change->path);
    applied_.left.push_back({.path = step.change->path, .why = std::move(why), .failed = true});
  }
  void leave(Step& step, std::string why) {
    step.is_over = true;
    applied_.left.push_back({.path = step.change->path, .why = std::move(why)});
  }
  void leave_rest(const char* why) {
    for (Step& step : steps_) {
      const bool is_mode_of_directory =
          step.change->change == ChangeKind::mode && is_directory(*step.change);
      if (!step.is_over && (!is_mode_of_directory || !may_go_on())) leave(step, why);
    }
  }
  void tell_partly(const Change& change, std::string why) {
    applied_.left.push_back({.path = change.path, .why = std::move(why), .partly = true});
  }

  void sort() {
    std::ranges::stable_sort(applied_.done, {}, &Change::path);
    std::ranges::stable_sort(applied_.conflicts, {}, &Left::path);
    std::ranges::stable_sort(applied_.left, {}, &Left::path);
    // Modes of directories are set twice.
    const auto same = [](const Left& one, const Left& other) {
      return one.path == other.path && one.why == other.why;
    };
    applied_.left.erase(std::ranges::unique(applied_.left, same).begin(), applied_.left.end());
  }

  static constexpr const char* kOtherDirectory = "its directory is not what it was on the host";
  static constexpr const char* kSplit =
      "it has other names in the workspace, which did not stay those of one file in the sandbox";

  const Copy& copy_;
  Applying how_;
  HostNames names_;
  Conflicts conflicts_;
  LinkedFiles files_;
  std::vector<Step> steps_;
  std::unordered_set<std::string> new_;          ///< directories that are to be made
  std::unordered_set<std::string> spared_;       ///< what stays by a rule
  std::unordered_set<std::string> conflicting_;  ///< directories that were not made
  std::size_t modes_set_ = 0;
  ReplacedFiles old_;
  Applied applied_;
  Notes notes_;
  Staging staging_;
};

}  // namespace

bool Applied::has_failures() const {
  return std::ranges::any_of(left, &Left::failed);
}

bool Applied::is_incomplete() const {
  return !conflicts.empty() || std::ranges::any_of(left, &Left::holds);
}

Result<Applied> apply(const Copy& copy, const Selection& selection, const Applying& how) {
  if (copy.layers.empty() || !copy.layers.front().lower.valid()) return Applied{};
  const int directory = copy.layers.front().lower.get();
  if (const Status locked = lock_directory(directory, {.begins = how.waits, .stop = how.stop});
      !locked) {
    if (locked.error().code != "stopped") return std::unexpected(locked.error());
    Applied nothing{.left = selection.left, .stopped = true};
    for (const Change& each : selection.changes)
      nothing.left.push_back({each.path, locked.error().message});
    return nothing;
  }
  SBX_TRY(check_in_place(copy));  // after the wait, which may have been long
  std::vector<std::string> leftovers = remove_leftovers(how.state_directory);
  const CopyingEnds ends(copy.copied);
  Applied applied = Application(copy, selection.links, how).run(selection);
  (void)::flock(directory, LOCK_UN);  // closing it would do the same
  applied.left.insert(applied.left.begin(), selection.left.begin(), selection.left.end());
  std::erase_if(leftovers,
                [&](const std::string& path) { return !path.starts_with(copy.directory + "/"); });
  applied.leftovers = std::move(leftovers);
  return applied;
}

std::vector<Left> conflicts_now(const Copy& copy, const std::vector<Change>& changes,
                                const Links& links) {
  if (copy.layers.empty() || !copy.layers.front().lower.valid()) return {};
  return Application(copy, links, {}).conflicts(changes);
}

}  // namespace sbx::workspace
