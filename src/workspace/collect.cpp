#include "workspace/collect.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <unordered_set>

#include "base/held.hpp"
#include "base/planted.hpp"
#include "base/sys.hpp"
#include "base/unwritable.hpp"
#include "plan/files/pattern.hpp"
#include "workspace/names.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr std::uint64_t kUnmatchedNamed = 20;

/// By itself, or as the plain name of a directory above it.
bool chooses(const std::string& pattern, const std::string& path) {
  if (matches(pattern, path)) return true;
  if (plan::is_wild(pattern)) return false;
  for (std::string at = directory_of(path); at != "."; at = directory_of(at))
    if (matches(pattern, at)) return true;
  return false;
}

/// The name of an open directory.
std::string path_of(int directory) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size =
      ::readlink(("/proc/self/fd/" + std::to_string(directory)).c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

class Collector {
 public:
  Collector(const Copy& copy, int target, const Collecting& what, std::optional<Owner> owner)
      : copy_(copy), target_(target), place_(path_of(target)), what_(what), owner_(owner) {
    collected_.unmet = what.patterns;
  }

  void take(const Change& change) {
    const bool has_content =
        change.change == ChangeKind::created || change.change == ChangeKind::modified;
    if (!has_content || change.type == FileType::directory) return;
    if (what_.patterns.empty()) {
      if (change.change != ChangeKind::created) return pass_over(change);
      if (change.type != FileType::file) return;
    } else if (!is_chosen(change.path)) {
      return pass_over(change);
    }
    if (std::string why = reason_against(change); !why.empty())
      return leave(change, std::move(why));
    if (const auto done = bring(change); !done) return leave(change, done.error().text(), true);
    sum_.bytes += change.bytes;
    ++sum_.files;
    if ((change.mode & 07000) != 0)
      collected_.left.push_back({.path = change.path,
                                 .why = "copied without its set-uid, set-gid or sticky bit",
                                 .partly = true});
    collected_.files.push_back(change);
  }

  [[nodiscard]] Collected result() { return std::move(collected_); }

 private:
  /// Every pattern is asked: each that chooses nothing is named.
  bool is_chosen(const std::string& path) {
    bool chosen = false;
    for (const std::string& each : what_.patterns) {
      if (!chooses(each, path)) continue;
      std::erase(collected_.unmet, each);
      chosen = true;
    }
    return chosen;
  }

  /// The user may have meant it: what the patterns don't match is named, a bounded part of it.
  void pass_over(const Change& change) {
    if (change.type != FileType::file) return;
    if (change.change == ChangeKind::modified) {
      if (++collected_.changed_count <= kUnmatchedNamed) collected_.changed.push_back(change.path);
      return;
    }
    if (++collected_.unmatched > kUnmatchedNamed) return;
    leave(change, "matches no pattern");
  }

  [[nodiscard]] std::string reason_against(const Change& change) const {
    if (change.type != FileType::file) return std::string(describe(change.type));
    if (has_temporary_name(change.path)) return kTemporaryName;
    for (const std::string& directory : {copy_.directory, place_}) {
      const std::string on_host = join(directory, change.path);
      if (std::ranges::find(what_.policy_files, on_host) != what_.policy_files.end())
        return "a policy file of this run";
    }
    const auto guard = reason_to_protect(copy_.directory, change.path, change.type);
    if (!guard.empty() && !is_named(what_.patterns, change.path))
      return protected_words(guard, "--collect must name it");
    return reason_beyond(what_.limits, sum_, change.path, change.bytes);
  }

  Status bring(const Change& change) {
    const UniqueFd source = SBX_TRY(open_content(copy_, change));
    const std::string path = directory_of(change.path);
    const UniqueFd directory = SBX_TRY(make_directory(target_, path, owner_));
    if (cleaned_.insert(path).second) remove_temporaries(directory.get());
    const std::string name = name_of(change.path);
    return put_file(source.get(), directory.get(), name,
                    mode_in_place(directory.get(), name, change.mode, umask_), owner_, {},
                    copy_.copied);
  }

  void leave(const Change& change, std::string why, bool failed = false) {
    collected_.left.push_back({change.path, std::move(why), failed});
  }

  const Copy& copy_;
  int target_;
  std::string place_;  ///< canonical; empty where it isn't known
  const Collecting& what_;
  std::optional<Owner> owner_;
  const mode_t umask_ = sys::file_mode_mask();
  OutSum sum_;
  std::unordered_set<std::string> cleaned_;
  Collected collected_;
};

/// "." for a plain name.
std::string directory_above(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// As mkdir(2). A path that has no name at its end can't be missing. `above`: where it was made.
bool make_last(const std::string& path, UniqueFd& above) {
  const std::string name = name_of(path);
  if (name.empty() || name == "." || name == "..") {
    errno = EEXIST;
    return false;
  }
  const std::string parent = path.substr(0, path.size() - name.size());
  UniqueFd holder(::open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!holder.valid() || !held::make_directory(holder.get(), name, 0777)) return false;
  above = std::move(holder);
  return true;
}

}  // namespace

OutDirectory::OutDirectory(UniqueFd directory, UniqueFd above, std::string name)
    : directory_(std::move(directory)),
      above_(std::move(above)),
      name_(std::move(name)),
      maker_(::getpid()) {}

OutDirectory& OutDirectory::operator=(OutDirectory&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(above_, other.above_);
  std::swap(name_, other.name_);
  std::swap(maker_, other.maker_);
  return *this;
}

OutDirectory::~OutDirectory() {
  if (!above_.valid() || maker_ != ::getpid()) return;
  struct stat now{};
  if (::fstatat(above_.get(), name_.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
      held::identity_of(now) == held::identity_of(directory_.get()))
    (void)held::remove_directory(above_.get(), name_);  // it holds what was brought out
}

Result<OutDirectory> prepare_target(const std::string& directory) {
  const auto refused = [&](int errno_value, const std::string& why = {},
                           const std::string& hint = {}) {
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "out-unusable",
                      .message = "cannot bring files out to \"" + directory + "\"" + why,
                      .errno_value = errno_value,
                      .hint = hint});
  };
  std::string path =
      directory;  // with a slash at its end a link would be followed, path_resolution(7)
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const auto unwritable = [&](const std::string& place, int errno_value) {
    return refused(errno_value, {}, cure_of_unwritable(place, errno_value));
  };
  const std::string parent_path = path == "/" ? path : directory_above(path);
  UniqueFd above;
  if (!make_last(path, above) && errno != EEXIST) return unwritable(parent_path, errno);
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return unwritable(parent_path, errno);
  // A program of an earlier run may have made the link: what it leads to is not the caller's
  // choice.
  if (S_ISLNK(facts.st_mode))
    return refused(0, ": it is a symbolic link; --out follows none", "name the directory itself");
  auto target = sys::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!target)
    return target.error().errno_value == ENOTDIR
               ? refused(ENOTDIR, {}, "name a directory; a new one is made")
               : unwritable(path, target.error().errno_value);
  struct stat parent{};
  if (::fstat(target->get(), &facts) != 0 ||
      ::fstatat(target->get(), "..", &parent, AT_SYMLINK_NOFOLLOW) != 0)
    return unwritable(path, errno);
  if (is_planted(parent, facts))
    return refused(0, ": another user owns it, in a directory that everybody can write to",
                   "name a directory of your own");
  if (::faccessat(target->get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return unwritable(path, errno);
  return OutDirectory(std::move(*target), std::move(above), name_of(path));
}

Result<Collected> collect(const Copy& copy, const ChangeSet& changes, int target,
                          const Collecting& what) {
  struct stat facts{};
  if (::fstat(target, &facts) != 0)
    return fail_errno(ErrorKind::host, "cannot-put", "cannot look at the directory of --out");
  SBX_TRY(lock_directory(target, what.waiting));
  const CopyingEnds ends(copy.copied);
  Collector collector(copy, target, what, owner_in(facts));
  for (const Change& change : changes.changes) collector.take(change);
  Collected collected = collector.result();
  (void)::flock(target, LOCK_UN);  // closing it would do the same
  collected.left.insert(collected.left.end(), changes.unread.begin(), changes.unread.end());
  for (const Left& each : changes.hidden)
    if (std::ranges::any_of(what.patterns, [&each](const std::string& pattern) {
          return chooses(pattern, each.path);
        }))
      collected.left.push_back(each);
  return collected;
}

}  // namespace sbx::workspace
