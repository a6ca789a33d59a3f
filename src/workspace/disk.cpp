#include "workspace/disk.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/held.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "base/sys.hpp"
#include "plan/tier/landlock.hpp"
#include "workspace/state.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr const char* kDisks = "disks";
constexpr const char* kLockEnd = ".lock";
constexpr const char* kFiles = "files";
constexpr std::size_t kNameLength = 16;  ///< of random_hex()

std::unexpected<Error> no_disk(const std::string& state, const char* what) {
  return fail(
      Error{.kind = ErrorKind::host,
            .code = "no-disk-directory",
            .message = std::string("cannot keep the private disk in '") + state + "': " + what,
            .errno_value = errno,
            .hint = "set HOME, or XDG_STATE_HOME below it, to a directory of yours on a disk; "
                    "limits.disk_on = \"memory\" needs none"});
}

/// Opens a directory that belongs to the caller and is closed to others.
Result<UniqueFd> open_own_disk(int directory, const std::string& name) {
  UniqueFd opened = SBX_TRY(sys::open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat facts{};
  if (::fstat(opened.get(), &facts) != 0 || facts.st_uid != ::geteuid())
    return fail(Error{.kind = ErrorKind::host,
                      .code = "no-disk-directory",
                      .message = "'" + name + "' belongs to somebody else"});
  return opened;
}

/// Makes one, whatever the umask says.
Result<UniqueFd> make_own_disk(int directory, const std::string& name) {
  if (!held::make_directory(directory, name, 0700))
    return fail_errno(ErrorKind::host, "no-disk-directory", "no directory can be made in it");
  UniqueFd made = SBX_TRY(open_own_disk(directory, name));
  if (!held::set_mode(made.get(), 0700))
    return fail_errno(ErrorKind::host, "no-disk-directory", "no directory can be made in it");
  return made;
}

/// Not a user's own: nobody gives a directory of their own the sticky bit and closes it to others.
constexpr mode_t kPrivateMode = S_ISVTX | 0700;
/// A program with a uid of its own goes through it as a member of its group: what lies in it is the
/// program's.
constexpr mode_t kModeForOwnUid = S_ISVTX | 0710;

/// Invalid with errno.
UniqueFd make_lock_file(int disks, const std::string& name) {
  return UniqueFd(
      ::openat(disks, name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
}

/// Invalid with errno.
UniqueFd make_private_directory(int place, const std::string& name) {
  if (!held::make_directory(place, name, kPrivateMode)) return UniqueFd();
  return UniqueFd(::openat(place, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

/// The name means the caller's own, which is open.
bool is_own(int directory, const std::string& name, int file) {
  struct stat facts{};
  return ::fstat(file, &facts) == 0 && facts.st_uid == ::geteuid() &&
         held::is_named(directory, name, file);
}

/// What `make` makes under the name, locked; invalid with errno. Another run's sweep can take what
/// was made a moment ago for a dead run's, and removes it: that is waited for, and it is made anew.
UniqueFd make_locked(UniqueFd (*make)(int, const std::string&), int directory,
                     const std::string& name) {
  constexpr int kMostSweeps = 100;
  for (int sweeps = 0; sweeps < kMostSweeps; ++sweeps) {
    UniqueFd made = make(directory, name);
    if (!made.valid() && errno == ENOENT) continue;
    if (!made.valid() || ::flock(made.get(), LOCK_EX) != 0) return UniqueFd();
    if (is_own(directory, name, made.get())) return made;
  }
  errno = EBUSY;
  return UniqueFd();
}

/// Locks what a dead run has left; invalid if its supervisor lives, or it is gone.
UniqueFd lock_left(int directory, const std::string& name, int flags) {
  auto left = held::open_name(directory, name, flags);
  if (!left || ::flock(left->get(), LOCK_EX | LOCK_NB) != 0 ||
      !is_own(directory, name, left->get()))
    return UniqueFd();
  return std::move(*left);
}

/// What can't be removed keeps its lock, by which a later sweep finds it: descriptors may be short.
void remove_with_lock(int disks, const std::string& name) {
  if (remove_tree(disks, name)) (void)held::remove_file(disks, name + kLockEnd);
}

bool can_hold_overlays(int directory) {
  struct statfs facts{};
  return ::fstatfs(directory, &facts) == 0 && facts.f_type != OVERLAYFS_SUPER_MAGIC &&
         ::fsetxattr(directory, "user.sbx", "1", 1, 0) == 0 &&
         ::fremovexattr(directory, "user.sbx") == 0;
}

bool can_hold_whiteouts(int directory) {
  return held::make_whiteout(directory, "hidden") && held::remove_file(directory, "hidden");
}

}  // namespace

Status DiskDirectory::note_place(int files) {
  struct stat facts{};
  std::array<char, 4096> text;
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(files)).c_str(), text.data(), text.size());
  if (::fstat(files, &facts) != 0 || length <= 0)
    return fail_errno(ErrorKind::host, "no-disk-directory", "its path is too long");
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  path_.assign(text.data(), static_cast<std::size_t>(length));
  return {};
}

Result<DiskDirectory> DiskDirectory::make(const std::string& state, uid_t uid, gid_t gid) {
  errno = 0;
  if (state.empty()) return no_disk("~/.local/state/sbx", "the caller has no home");
  DiskDirectory directory;
  auto disks = open_state(state, kDisks, Missing::is_made);
  if (!disks) {
    errno = disks.error().errno_value;
    return no_disk(state, "it can't be made or belongs to somebody else");
  }
  directory.disks_ = std::move(*disks);
  directory.name_ = random_hex();
  directory.lock_ = make_locked(make_lock_file, directory.disks_.get(), directory.name_ + kLockEnd);
  if (!directory.lock_.valid()) return no_disk(state, "no directory can be made in it");
  const auto own = make_own_disk(directory.disks_.get(), directory.name_);
  const auto files = own ? make_own_disk(own->get(), kFiles) : std::unexpected(own.error());
  const Status noted = files ? directory.note_place(files->get()) : std::unexpected(files.error());
  if (!noted) {
    errno = noted.error().errno_value;
    return no_disk(state, noted.error().message.c_str());
  }
  directory.takes_overlays_ = can_hold_overlays(files->get());
  directory.takes_whiteouts_ = can_hold_whiteouts(files->get());
  if (!held::set_mode(files->get(), 0755) || !held::set_owner(files->get(), uid, gid))
    return no_disk(state, "it can't be given to the sandbox");
  return directory;
}

namespace {

std::unexpected<Error> no_private(const std::string& path, std::string why, int errno_value) {
  const bool is_full = errno_value == ENOSPC || errno_value == EDQUOT;
  return fail(
      Error{.kind = ErrorKind::host,
            .code = "no-private-directory",
            .message = "cannot make the private directory '" + path + "': " + std::move(why),
            .errno_value = errno_value,
            .hint = is_full ? "make room in /tmp"
                            : "/tmp must be a directory of root's with the sticky bit (chmod "
                              "1777), from which programs can be executed"});
}

/// Nobody but root can move what root makes in it.
bool is_safe_place(int place) {
  struct stat facts{};
  return ::fstat(place, &facts) == 0 && facts.st_uid == 0 &&
         ((facts.st_mode & 022) == 0 || (facts.st_mode & S_ISVTX) != 0) &&
         (facts.st_mode & 01) != 0;
}

}  // namespace

Result<DiskDirectory> DiskDirectory::make_private(const std::string& path, uid_t uid, gid_t gid) {
  DiskDirectory directory;
  auto place = sys::open_at(AT_FDCWD, directory_of(path), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!place) return no_private(path, "the place can't be opened", place.error().errno_value);
  if (!is_safe_place(place->get())) return no_private(path, "others can move it there", 0);
  directory.disks_ = std::move(*place);
  directory.lock_ = make_locked(make_private_directory, directory.disks_.get(), name_of(path));
  const int files = directory.lock_.get();
  if (files < 0) return no_private(path, "nothing can be made there", errno);
  directory.is_own_lock_ = true;
  directory.name_ = name_of(path);
  if (auto noted = directory.note_place(files); !noted)
    return no_private(path, noted.error().message, noted.error().errno_value);
  struct statvfs medium{};
  if (::fstatvfs(files, &medium) != 0 || (medium.f_flag & ST_NOEXEC) != 0)
    return no_private(path, "no program can be executed from there", 0);
  if (directory.path_ != path) return no_private(path, "a link leads there", 0);
  constexpr auto kStays = static_cast<uid_t>(-1);
  const bool is_callers = uid == ::geteuid();
  if ((!is_callers && !held::set_owner(files, kStays, gid)) ||
      !held::set_mode(files, is_callers ? kPrivateMode : kModeForOwnUid))
    return no_private(path, "it can't be opened to the program", errno);
  return directory;
}

DiskDirectory::DiskDirectory(DiskDirectory&& other) noexcept
    : disks_(std::move(other.disks_)),
      lock_(std::move(other.lock_)),
      is_own_lock_(other.is_own_lock_),
      name_(std::exchange(other.name_, {})),
      path_(std::move(other.path_)),
      device_(other.device_),
      inode_(other.inode_),
      takes_overlays_(other.takes_overlays_),
      takes_whiteouts_(other.takes_whiteouts_) {}

DiskDirectory::~DiskDirectory() {
  if (name_.empty() || !lock_.valid()) return;
  if (is_own_lock_ && is_own(disks_.get(), name_, lock_.get()))
    (void)remove_tree(disks_.get(), name_);
  else if (!is_own_lock_)
    remove_with_lock(disks_.get(), name_);
}

void DiskDirectory::note_init(pid_t pid) const {
  const std::string text = std::to_string(pid);
  (void)!::pwrite(lock_.get(), text.data(), text.size(), 0);  // without it the lock alone counts
}

namespace {

/// The supervisor's death frees the lock at once and kills PID 1. The kernel then closes PID 1's
/// files, kills its namespace, waits for each process of it, and makes the pidfd readable last,
/// pid_namespaces(7), zap_pid_ns_processes().
bool has_live_processes(int lock) {
  constexpr int kEndsWithin = 1000;  // milliseconds
  ::lseek(lock, 0, SEEK_SET);
  const auto text = sys::read_all(lock, 32);
  pid_t pid = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), pid).ec != std::errc())
    return false;
  const UniqueFd process = process::open(pid);
  if (!process.valid()) return false;
  // Another process may have the number now; if that one is a PID 1 of a namespace too, the next
  // sweep looks again.
  const auto facts = sys::read_file("/proc/self/fdinfo/" + std::to_string(process.get()), 4096);
  if (facts && facts->find("\nNSpid:\t" + std::to_string(pid) + "\t1\n") == std::string::npos)
    return false;
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, kEndsWithin) <= 0;
}

}  // namespace

namespace {

bool is_random_hex(std::string_view name) {
  return name.size() == kNameLength &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_lock_name(std::string_view name) {
  return name.ends_with(kLockEnd) &&
         is_random_hex(name.substr(0, name.size() - std::string_view(kLockEnd).size()));
}

/// Of others' files, which may be many in /tmp, only the names are read.
bool may_be_private(int place, const std::string& name) {
  const std::string_view prefix = plan::kPrivateName;
  struct stat facts{};
  return name.starts_with(prefix) && is_random_hex(std::string_view(name).substr(prefix.size())) &&
         ::fstatat(place, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid() &&
         ((facts.st_mode & 01777) == kPrivateMode || (facts.st_mode & 01777) == kModeForOwnUid);
}

}  // namespace

void sweep_disk_directories(const std::string& state) {
  const auto disks = open_state(state, kDisks, Missing::is_an_error);
  const auto names = disks ? read_names(disks->get()) : std::unexpected(disks.error());
  if (!names) return;
  for (const std::string& name : *names) {
    if (!is_lock_name(name)) continue;
    const UniqueFd lock = lock_left(disks->get(), name, O_RDWR);
    if (lock.valid() && !has_live_processes(lock.get()))
      remove_with_lock(disks->get(), name.substr(0, kNameLength));
  }
}

void sweep_private_directories(const std::function<bool(uid_t)>& died) {
  const auto place = sys::open_at(AT_FDCWD, plan::kPrivatePlaces, O_RDONLY | O_DIRECTORY);
  if (!place || !is_safe_place(place->get())) return;
  const auto names = read_names(place->get());
  if (!names) return;
  for (const std::string& name : *names) {
    if (!may_be_private(place->get(), name)) continue;
    const UniqueFd lock = lock_left(place->get(), name, O_RDONLY | O_DIRECTORY);
    struct stat facts{};
    if (!lock.valid() || ::fstat(lock.get(), &facts) != 0) continue;
    // A program with a uid of its own has the group of the same number.
    const bool is_of_own_uid = (facts.st_mode & 01777) == kModeForOwnUid;
    if (!is_of_own_uid || died(facts.st_gid)) (void)remove_tree(place->get(), name);
  }
}

namespace {

constexpr std::size_t kDeepest = 60;  ///< directories that are open at a time

/// Removes a tree from the top down. The way up is the descriptors of the way down: a directory
/// that another process moved would make ".." lead out of the tree. A directory that lies too deep
/// for that is moved up to the top first.
class Removal {
 public:
  explicit Removal(UniqueFd top) { enter({}, std::move(top)); }

  void run() {
    while (!way_.empty()) {
      Level& here = way_.back();
      if (here.inner.empty()) {
        leave();
        continue;
      }
      const std::string next = std::move(here.inner.back());
      here.inner.pop_back();
      if (way_.size() < kDeepest)
        descend(next);
      else
        move_up(next);
    }
  }

  /// Opens a directory for removal, and gives its owner access first where the mode gives none.
  static UniqueFd open(int directory, const std::string& name) {
    const auto place = held::open_beneath(directory, name, O_PATH | O_DIRECTORY);
    struct stat facts{};
    if (!place || ::fstat(place->get(), &facts) != 0) return UniqueFd();
    if ((facts.st_mode & S_IRWXU) != S_IRWXU)
      (void)held::set_mode(place->get(), S_IRWXU);  // what fails shows when it is opened
    auto opened = held::open_again(place->get(), O_RDONLY | O_DIRECTORY);
    return opened ? std::move(*opened) : UniqueFd();
  }

 private:
  struct Level {
    std::string name;
    UniqueFd directory;
    std::vector<std::string> inner;  ///< directories that were not empty
  };

  void enter(std::string name, UniqueFd directory) {
    Level& level = way_.emplace_back(std::move(name), std::move(directory));
    const auto entries = read_directory(level.directory.get());
    if (!entries) return;
    for (const Entry& entry : *entries) {
      const int here = level.directory.get();
      if (!S_ISDIR(entry.facts.st_mode))
        (void)held::remove_file(here, entry.name);  // what stays keeps its directory
      else if (!held::remove_directory(here, entry.name))
        level.inner.push_back(entry.name);
    }
  }

  void descend(const std::string& name) {
    if (UniqueFd inner = open(way_.back().directory.get(), name); inner.valid())
      enter(name, std::move(inner));
  }

  void leave() {
    const std::string name = std::move(way_.back().name);
    way_.pop_back();
    if (!way_.empty()) (void)held::remove_directory(way_.back().directory.get(), name);
  }

  /// rename(2) writes to a directory that it moves, so its owner needs access to it.
  void move_up(const std::string& name) {
    std::string at_top = random_hex();
    Level& here = way_.back();
    (void)open(here.directory.get(), name);
    if (held::rename_to_free({here.directory.get(), name}, {way_.front().directory.get(), at_top}))
      way_.front().inner.push_back(std::move(at_top));
  }

  std::vector<Level> way_;
};

}  // namespace

bool remove_tree(int directory, const std::string& name) {
  if (UniqueFd top = Removal::open(directory, name); top.valid()) Removal(std::move(top)).run();
  return held::remove_directory(directory, name) || errno == ENOENT;
}

}  // namespace sbx::workspace
