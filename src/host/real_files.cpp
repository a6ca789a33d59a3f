#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/sys.hpp"
#include "host/host.hpp"
#include "host/walk.hpp"

namespace sbx::host {
namespace {

std::unexpected<Error> refused(const char* doing, const std::string& path) {
  return fail_errno(ErrorKind::host, "cannot-look",
                    std::string("cannot ") + doing + " '" + path + "'");
}

/// Absolute, without "." and ".." and without a slash too many.
bool is_plain(std::string_view path) {
  if (!path.starts_with('/')) return false;
  for (path.remove_prefix(1); !path.empty();) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    if (name.empty() || name == "." || name == ".." || end + 1 == path.size()) return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

class RealFiles final : public Files {
 public:
  Result<FileFacts> look(const std::string& path) const override {
    struct stat facts{};
    if (::lstat(path.c_str(), &facts) != 0) return refused("look at", path);
    return FileFacts{.type = type_of(facts.st_mode),
                     .device = facts.st_dev,
                     .inode = facts.st_ino,
                     .uid = facts.st_uid,
                     .gid = facts.st_gid,
                     .mode = facts.st_mode & 07777U,
                     .size = static_cast<std::uint64_t>(facts.st_size),
                     .device_number = static_cast<std::uint32_t>(facts.st_rdev),
                     .links = static_cast<std::uint32_t>(facts.st_nlink),
                     .stored = static_cast<std::uint64_t>(facts.st_blocks) * 512,
                     .changed = facts.st_ctim.tv_sec * 1'000'000'000 + facts.st_ctim.tv_nsec,
                     .modified = facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec};
  }

  Result<std::string> canonical(const std::string& path) const override {
    // A path without links is canonical.
    if (is_plain(path)) {
      const auto direct = sys::open_resolved(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS);
      if (direct) return path;
      if (direct.error().errno_value != ELOOP) {
        errno = direct.error().errno_value;
        return refused("find", path);
      }
    }
    // Magic links ("/proc/self/fd/3") would lead to files that have no such name.
    const auto file = sys::open_resolved(AT_FDCWD, path, O_PATH, RESOLVE_NO_MAGICLINKS);
    if (!file) {
      errno = file.error().errno_value;
      return refused("find", path);
    }
    char link[64];
    (void)std::snprintf(link, sizeof link, "/proc/self/fd/%d", file->get());
    return link_target(link);
  }

  Result<std::string> link_target(const std::string& path) const override {
    char text[4097];
    const ssize_t length = ::readlink(path.c_str(), text, sizeof text - 1);
    if (length < 0) return refused("read the link", path);
    return std::string(text, static_cast<std::size_t>(length));
  }

  Result<std::string> read_head(const std::string& path, std::size_t limit) const override {
    // A FIFO that took the file's place must not hold sbx up.
    const UniqueFd file = SBX_TRY(sys::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    return sys::read_all(file.get(), limit);
  }

  Result<std::vector<Entry>> list(const std::string& path, const Wanted& wanted) const override {
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) return refused("list", path);
    std::vector<Entry> entries;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string_view name(entry->d_name);
      if (name == "." || name == ".." || (wanted && !wanted(name))) continue;
      FileType type = type_of(static_cast<mode_t>(DTTOIF(entry->d_type)));
      if (entry->d_type == DT_UNKNOWN) {  // some file systems report no type
        struct stat facts{};
        if (::fstatat(::dirfd(directory), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0)
          type = type_of(facts.st_mode);
      }
      entries.push_back({.name = std::string(name), .type = type});
    }
    ::closedir(directory);
    std::ranges::sort(entries, {}, &Entry::name);
    return entries;
  }

  Status walk(const std::string& root, const Visit& visit, const Shut& shut) const override {
    return walk_tree(root, visit, shut);
  }

  bool memory_takes_attributes() const override {
    const UniqueFd file(::memfd_create("sbx-probe", MFD_CLOEXEC));
    // If not even a memfd can be made, mounting the overlay will show it.
    return !file.valid() || ::fsetxattr(file.get(), "user.sbx", "1", 1, 0) == 0;
  }

  bool may_read(const std::string& path) const override { return may(path, R_OK); }
  bool may_execute(const std::string& path) const override { return may(path, X_OK); }

 private:
  static bool may(const std::string& path, int wanted) {
    return ::faccessat(AT_FDCWD, path.c_str(), wanted, AT_EACCESS) == 0;
  }
};

}  // namespace

std::shared_ptr<const Files> real_files() {
  return std::make_shared<const RealFiles>();
}

}  // namespace sbx::host
