#include "base/held.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/beneath.hpp"
#include "base/entries.hpp"
#include "base/sys.hpp"

namespace sbx::held {
namespace {

constexpr long kFchmodat2 = 452;  // Linux 6.6; headers of Debian 12 lack the name

/// openat2(2) refuses with EINVAL what has no meaning for O_PATH.
int unwaiting(int flags) {
  return flags | O_NOFOLLOW | ((flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY);
}

const char* one(const std::string& name) {
  SBX_ASSERT(!name.empty() && name.find('/') == std::string::npos && name != "." && name != "..");
  return name.c_str();
}

/// /proc/self/fd of a real procfs: its entries lead to open files themselves, not to names.
UniqueFd own_descriptors() {
  UniqueFd directory(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct statfs facts{};
  if (directory.valid() && ::fstatfs(directory.get(), &facts) == 0 &&
      facts.f_type == PROC_SUPER_MAGIC)
    return directory;
  errno = ENOSYS;
  return UniqueFd();
}

bool is_symlink(int file) {
  struct stat facts{};
  return ::fstat(file, &facts) == 0 && S_ISLNK(facts.st_mode);
}

bool is_empty(int directory) {
  bool found = false;
  const bool is_read = sys::read_entries<1024>(directory, [&](const dirent64&) {
    found = true;
    return false;
  });
  return is_read && !found && ::lseek(directory, 0, SEEK_SET) == 0;
}

/// A process that can write to the directory may have put another one in the place of the one that
/// was made. It can't empty one that is not its own, and its own it may have as well.
bool is_as_made(int directory, int made) {
  struct stat above{};
  struct stat facts{};
  return ::fstat(directory, &above) == 0 && ::fstat(made, &facts) == 0 &&
         facts.st_dev == above.st_dev &&
         (facts.st_uid == ::geteuid() || facts.st_uid == above.st_uid) && is_empty(made);
}

std::unexpected<Error> cannot_make(const std::string& path) {
  return fail_errno(ErrorKind::host, "cannot-make", "cannot make the directory '" + path + "'");
}

}  // namespace

std::optional<Identity> identity_of(int file) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return std::nullopt;
  return identity_of(facts);
}

bool is_named(int directory, const std::string& name, int file) {
  struct stat named{};
  return ::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         identity_of(file) == identity_of(named);
}

Result<UniqueFd> open_beneath(int root, const std::string& path, int flags) {
  return sys::open_resolved(root, path, static_cast<std::uint64_t>(unwaiting(flags)), kBeneath);
}

Result<UniqueFd> open_name(int directory, const std::string& name, int flags) {
  return sys::open_at(directory, one(name), unwaiting(flags));
}

Result<UniqueFd> open_again(int file, int flags) {
  struct stat facts{};
  if (::fstat(file, &facts) == 0 && S_ISDIR(facts.st_mode)) return sys::open_at(file, ".", flags);
  const UniqueFd descriptors = own_descriptors();
  if (!descriptors.valid() || S_ISLNK(facts.st_mode))
    return fail_errno(ErrorKind::host, "cannot-open", "cannot open a file again");
  return sys::open_at(descriptors.get(), std::to_string(file), flags | O_NONBLOCK | O_NOCTTY);
}

bool set_mode(int file, mode_t mode) {
  if (::fchmod(file, mode) == 0) return true;
  if (errno != EBADF) return false;  // O_PATH, or not open at all
  if (is_symlink(file)) {
    errno = EOPNOTSUPP;
    return false;
  }
  if (::syscall(kFchmodat2, file, "", mode, AT_EMPTY_PATH) == 0) return true;
  if (errno != ENOSYS) return false;
  const UniqueFd descriptors = own_descriptors();
  return descriptors.valid() &&
         ::fchmodat(descriptors.get(), std::to_string(file).c_str(), mode, 0) == 0;
}

bool set_owner(int file, uid_t uid, gid_t gid) {
  return ::fchownat(file, "", uid, gid, AT_EMPTY_PATH) == 0;
}

bool set_times(int file, const timespec (&times)[2]) {
  if (::futimens(file, times) == 0) return true;
  // Since Linux 5.8 for O_PATH.
  return errno == EBADF && ::utimensat(file, "", times, AT_EMPTY_PATH) == 0;
}

Result<UniqueFd> make_and_open(int directory, const std::string& name, mode_t mode) {
  if (::mkdirat(directory, one(name), mode) != 0) return cannot_make(name);
  UniqueFd made = SBX_TRY(open_name(directory, name, O_RDONLY | O_DIRECTORY));
  if (is_as_made(directory, made.get())) return made;
  return fail(Error{.kind = ErrorKind::host,
                    .code = "replaced",
                    .message = "another process replaced the directory '" + name + "'"});
}

Result<UniqueFd> open_or_make_path(const std::string& path, mode_t mode) {
  UniqueFd at(::open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return cannot_make(path);
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    // Made only where it is missing: for what is there, a read-only file system says EROFS and not
    // EEXIST.
    UniqueFd next(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next.valid() && errno == ENOENT && name != "..") {
      if (::mkdirat(at.get(), name.c_str(), mode) != 0 && errno != EEXIST)
        return cannot_make(path.substr(0, end));
      next = UniqueFd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    if (!next.valid()) return cannot_make(path.substr(0, end));
    at = std::move(next);
  }
  return at;
}

bool make_directory(int directory, const std::string& name, mode_t mode) {
  return ::mkdirat(directory, one(name), mode) == 0;
}

bool make_symlink(const std::string& text, int directory, const std::string& name) {
  return ::symlinkat(text.c_str(), directory, one(name)) == 0;
}

bool make_fifo(int directory, const std::string& name, mode_t mode) {
  return ::mkfifoat(directory, one(name), mode) == 0;
}

bool make_whiteout(int directory, const std::string& name) {
  return ::mknodat(directory, one(name), S_IFCHR, 0) == 0;
}

bool link_file(int file, int directory, const std::string& name) {
  if (::linkat(file, "", directory, one(name), AT_EMPTY_PATH) == 0) return true;
  // ENOENT: the capability is missing, open(2), "O_TMPFILE". A link that is held would be followed
  // by the other way.
  if (errno != ENOENT || is_symlink(file)) return false;
  const UniqueFd descriptors = own_descriptors();
  return descriptors.valid() && ::linkat(descriptors.get(), std::to_string(file).c_str(), directory,
                                         name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool remove_file(int directory, const std::string& name) {
  return ::unlinkat(directory, one(name), 0) == 0;
}

bool remove_directory(int directory, const std::string& name) {
  return ::unlinkat(directory, one(name), AT_REMOVEDIR) == 0;
}

bool rename(const Name& from, const Name& to) {
  return ::renameat(from.directory, one(from.name), to.directory, one(to.name)) == 0;
}

bool rename_to_free(const Name& from, const Name& to) {
  return ::renameat2(from.directory, one(from.name), to.directory, one(to.name),
                     RENAME_NOREPLACE) == 0;
}

bool exchange(const Name& first, const Name& second) {
  return ::renameat2(first.directory, one(first.name), second.directory, one(second.name),
                     RENAME_EXCHANGE) == 0;
}

}  // namespace sbx::held
