#include "workspace/disk.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/sys.hpp"
#include "workspace/state.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr const char* kDisks = "disks";
constexpr const char* kLockEnd = ".lock";
constexpr const char* kFiles = "files";

std::unexpected<Error> no_disk(const std::string& state, const char* what) {
  return fail(
      Error{.kind = ErrorKind::host,
            .code = "no-disk-folder",
            .message = std::string("cannot keep the private disk in '") + state + "': " + what,
            .errno_value = errno,
            .hint = "set HOME, or XDG_STATE_HOME below it, to a directory of yours on a disk; "
                    "limits.disk_on = \"memory\" needs none"});
}

/// Opens a directory that belongs to the caller and is closed to others.
Result<UniqueFd> open_own_disk(int folder, const std::string& name) {
  UniqueFd opened = SBX_TRY(sys::open_at(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat facts{};
  if (::fstat(opened.get(), &facts) != 0 || facts.st_uid != ::geteuid())
    return fail(Error{.kind = ErrorKind::host,
                      .code = "no-disk-folder",
                      .message = "'" + name + "' belongs to somebody else"});
  return opened;
}

/// The lock of a new name, held; invalid when a sweep took it for a dead one.
UniqueFd take_lock(int disks, const std::string& name) {
  const std::string file = name + kLockEnd;
  UniqueFd lock(
      ::openat(disks, file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat held{};
  struct stat named{};
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      ::fstat(lock.get(), &held) != 0 || ::fstatat(disks, file.c_str(), &named, 0) != 0 ||
      held.st_ino != named.st_ino)
    return UniqueFd();
  return lock;
}

bool can_hold_overlays(int folder) {
  struct statfs facts{};
  return ::fstatfs(folder, &facts) == 0 && facts.f_type != OVERLAYFS_SUPER_MAGIC &&
         ::fsetxattr(folder, "user.sbx", "1", 1, 0) == 0 && ::fremovexattr(folder, "user.sbx") == 0;
}

bool can_hold_whiteouts(int folder) {
  return ::mknodat(folder, "hidden", S_IFCHR, 0) == 0 && ::unlinkat(folder, "hidden", 0) == 0;
}

}  // namespace

Result<DiskFolder> DiskFolder::make(const std::string& state, uid_t uid, gid_t gid) {
  errno = 0;
  if (state.empty()) return no_disk("~/.local/state/sbx", "the caller has no home");
  DiskFolder folder;
  auto disks = open_state(state, kDisks, Missing::is_made);
  if (!disks) {
    errno = disks.error().errno_value;
    return no_disk(state, "it can't be made or belongs to somebody else");
  }
  folder.disks_ = std::move(*disks);
  for (int attempt = 0; attempt < 8 && !folder.lock_.valid(); ++attempt) {
    folder.name_ = random_hex();
    folder.lock_ = take_lock(folder.disks_.get(), folder.name_);
  }
  if (!folder.lock_.valid()) return no_disk(state, "no directory can be made in it");
  if (::mkdirat(folder.disks_.get(), folder.name_.c_str(), 0700) != 0)
    return no_disk(state, "no directory can be made in it");
  const UniqueFd own = SBX_TRY(open_own_disk(folder.disks_.get(), folder.name_));
  struct stat facts{};
  if (::mkdirat(own.get(), kFiles, 0700) != 0)
    return no_disk(state, "no directory can be made in it");
  const UniqueFd files = SBX_TRY(open_own_disk(own.get(), kFiles));
  folder.takes_overlays_ = can_hold_overlays(files.get());
  folder.takes_whiteouts_ = can_hold_whiteouts(files.get());
  if (::fchmod(files.get(), 0755) != 0 || ::fchown(files.get(), uid, gid) != 0 ||
      ::fstat(files.get(), &facts) != 0)
    return no_disk(state, "it can't be given to the sandbox");
  folder.device_ = facts.st_dev;
  folder.inode_ = facts.st_ino;
  std::array<char, 4096> text;
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(files.get())).c_str(),
                                    text.data(), text.size());
  if (length <= 0) return no_disk(state, "its path is too long");
  folder.path_.assign(text.data(), static_cast<std::size_t>(length));
  return folder;
}

DiskFolder::DiskFolder(DiskFolder&& other) noexcept
    : disks_(std::move(other.disks_)),
      lock_(std::move(other.lock_)),
      name_(std::exchange(other.name_, {})),
      path_(std::move(other.path_)),
      device_(other.device_),
      inode_(other.inode_),
      takes_overlays_(other.takes_overlays_),
      takes_whiteouts_(other.takes_whiteouts_) {}

DiskFolder::~DiskFolder() {
  if (name_.empty() || !lock_.valid()) return;
  remove_tree(disks_.get(), name_);
  (void)::unlinkat(disks_.get(), (name_ + kLockEnd).c_str(), 0);
}

void sweep_disk_folders(const std::string& state) {
  const auto disks = open_state(state, kDisks, Missing::is_an_error);
  if (!disks) return;
  const auto entries = read_folder(disks->get());
  if (!entries) return;
  for (const Entry& entry : *entries) {
    if (!entry.name.ends_with(kLockEnd) || !S_ISREG(entry.facts.st_mode) ||
        entry.facts.st_uid != ::geteuid())
      continue;
    const auto lock = sys::open_at(disks->get(), entry.name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (!lock || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) continue;  // its run lives
    remove_tree(disks->get(),
                entry.name.substr(0, entry.name.size() - std::string_view(kLockEnd).size()));
    (void)::unlinkat(disks->get(), entry.name.c_str(), 0);
  }
}

namespace {

/// A directory on the way down, and its subdirectories that are not empty yet.
struct Level {
  std::string name;
  std::vector<std::string> inner;
};

/// Opens a directory. Gives its owner access first, if the mode gives none.
UniqueFd open_to_remove(int folder, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd place(::openat(folder, name.c_str(), O_PATH | kFlags));
  struct stat facts{};
  if (place.valid() && ::fstat(place.get(), &facts) == 0 && (facts.st_mode & 0700) != 0700)
    (void)!::fchmodat(folder, name.c_str(), 0700, 0);  // what fails shows when it is opened
  return UniqueFd(::openat(folder, name.c_str(), kFlags));
}

/// Removes files and empty directories. Returns the directories that are not empty.
std::vector<std::string> empty_out(int folder) {
  std::vector<std::string> inner;
  const auto entries = read_folder(folder);
  if (!entries) return inner;
  for (const Entry& entry : *entries) {
    const bool is_folder = S_ISDIR(entry.facts.st_mode);
    if (::unlinkat(folder, entry.name.c_str(), is_folder ? AT_REMOVEDIR : 0) != 0 && is_folder)
      inner.push_back(entry.name);
  }
  return inner;
}

}  // namespace

void remove_tree(int folder, const std::string& name) {
  UniqueFd here = open_to_remove(folder, name);
  if (!here.valid()) return;
  std::vector<Level> way;
  way.push_back({name, empty_out(here.get())});
  while (way.size() > 1 || !way.back().inner.empty()) {
    if (!way.back().inner.empty()) {
      std::string next = std::move(way.back().inner.back());
      way.back().inner.pop_back();
      UniqueFd inner = open_to_remove(here.get(), next);
      if (!inner.valid()) continue;
      here = std::move(inner);
      way.push_back({std::move(next), empty_out(here.get())});
      continue;
    }
    // Two descriptors at a time: up by "..", because no process can move the directory any more.
    UniqueFd above(::openat(here.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!above.valid()) return;
    here = std::move(above);
    (void)::unlinkat(here.get(), way.back().name.c_str(), AT_REMOVEDIR);
    way.pop_back();
  }
  (void)::unlinkat(folder, name.c_str(), AT_REMOVEDIR);
}

}  // namespace sbx::workspace
