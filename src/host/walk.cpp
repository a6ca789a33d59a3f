#include "host/walk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/beneath.hpp"
#include "base/entries.hpp"
#include "base/sys.hpp"

namespace sbx::host {
namespace {

constexpr unsigned kWanted = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_GID |
                             STATX_INO | STATX_SIZE | STATX_BLOCKS | STATX_CTIME | STATX_MTIME;
constexpr int kHow = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;

FileFacts facts_of(const struct statx& seen) {
  return {.type = type_of(seen.stx_mode),
          .device = makedev(seen.stx_dev_major, seen.stx_dev_minor),
          .inode = seen.stx_ino,
          .uid = seen.stx_uid,
          .gid = seen.stx_gid,
          .mode = static_cast<mode_t>(seen.stx_mode & 07777U),
          .size = seen.stx_size,
          .device_number =
              static_cast<std::uint32_t>(makedev(seen.stx_rdev_major, seen.stx_rdev_minor)),
          .links = seen.stx_nlink,
          .stored = seen.stx_blocks * 512,
          .changed = seen.stx_ctime.tv_sec * 1'000'000'000 + seen.stx_ctime.tv_nsec,
          .modified = seen.stx_mtime.tv_sec * 1'000'000'000 + seen.stx_mtime.tv_nsec};
}

class Walker {
 public:
  Walker(const std::string& root, const Visit& visit, const Shut& shut)
      : root_(root), visit_(visit), shut_(shut) {}

  Status run() {
    auto top = sys::open_resolved(AT_FDCWD, root_, O_RDONLY | O_DIRECTORY,
                                  RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (!top && top.error().errno_value != EACCES) return fail(std::move(top).error());
    if (!top) {
      shut_({});
      return {};
    }
    top_ = std::move(*top);
    SBX_TRY(list(top_.get(), {}));
    while (!waiting_.empty() && !ended_) {
      const std::string directory = std::move(waiting_.back());
      waiting_.pop_back();
      SBX_TRY(enter(directory));
    }
    return {};
  }

 private:
  Status enter(const std::string& directory) {
    const auto opened =
        sys::open_resolved(top_.get(), directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, kBeneath);
    if (opened) return list(opened->get(), directory);
    switch (opened.error().errno_value) {
      case EACCES:
        shut_(directory);
        return {};
      case ENOENT:  // removed meanwhile, or no longer a directory
      case ENOTDIR:
      case ELOOP:
      case EXDEV:  // mounted on meanwhile
        return {};
      default:
        return refused(directory, opened.error().errno_value);
    }
  }

  Status list(int fd, const std::string& directory) {
    bool may_enter = true;
    const bool is_read = sys::read_entries<kBuffer>(fd, [&](const dirent64& entry) {
      may_enter = look(fd, directory, entry.d_name);
      return may_enter && !ended_;
    });
    if (!is_read && errno != EACCES) return refused(directory, errno);
    if (!is_read || !may_enter) shut_(directory);
    return {};
  }

  /// False if the directory's mode lets the caller list it but not enter it.
  bool look(int fd, const std::string& directory, const char* name) {
    struct statx seen{};
    if (::statx(fd, name, kHow, kWanted, &seen) != 0) return errno != EACCES;  // gone meanwhile
    const FileFacts facts = facts_of(seen);
    const bool is_mount = (seen.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    const Walk next =
        visit_({.directory = directory, .name = name, .facts = facts, .is_mount = is_mount});
    if (next == Walk::end) ended_ = true;
    if (next == Walk::into && facts.type == FileType::directory && !is_mount)
      waiting_.push_back(directory.empty() ? name : directory + "/" + name);
    return true;
  }

  [[nodiscard]] std::unexpected<Error> refused(const std::string& directory, int error) const {
    return fail_errno(ErrorKind::host, "cannot-look",
                      "cannot list '" + root_ + (directory.empty() ? "" : "/") + directory + "'",
                      error);
  }

  const std::string& root_;
  const Visit& visit_;
  const Shut& shut_;
  UniqueFd top_;
  std::vector<std::string> waiting_;
  bool ended_ = false;
  static constexpr std::size_t kBuffer = 32'768;
};

}  // namespace

FileType type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::regular;
    case S_IFDIR:
      return FileType::directory;
    case S_IFLNK:
      return FileType::symlink;
    case S_IFSOCK:
      return FileType::socket;
    case S_IFIFO:
      return FileType::fifo;
    case S_IFCHR:
      return FileType::character;
    case S_IFBLK:
      return FileType::block;
    default:
      return FileType::other;
  }
}

Status walk_tree(const std::string& root, const Visit& visit, const Shut& shut) {
  return Walker(root, visit, shut).run();
}

}  // namespace sbx::host
