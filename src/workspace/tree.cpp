#include "workspace/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>

#include "base/beneath.hpp"
#include "base/sys.hpp"

namespace sbx::workspace {
namespace {

constexpr std::size_t kReadAtOnce = 65'536;

/// The mode of a name that is no link and has no other user any more.
bool open_up(int root, const std::string& path, mode_t more) {
  struct stat facts{};
  const auto folder = sys::open_resolved(root, folder_of(path), O_PATH | O_DIRECTORY, kBeneath);
  const std::string name = name_of(path);
  return folder && ::fstatat(folder->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         (S_ISDIR(facts.st_mode) || S_ISREG(facts.st_mode)) &&
         ::fchmodat(folder->get(), name.c_str(), (facts.st_mode & 0777) | more, 0) == 0;
}

Result<UniqueFd> open_regular(int root, const std::string& path) {
  auto file =
      sys::open_resolved(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, kBeneath);
  struct stat facts{};
  if (file && (::fstat(file->get(), &facts) != 0 || !S_ISREG(facts.st_mode)))
    return fail(Error{.kind = ErrorKind::host,
                      .code = "not-a-file",
                      .message = "'" + path + "' is not a regular file"});
  return file;
}

/// Where stored bytes begin at or after an offset; the size when only a hole follows.
off_t next_data(int fd, off_t from, off_t size) {
  const off_t data = ::lseek(fd, from, SEEK_DATA);
  if (data >= 0) return std::min(data, size);
  return errno == ENXIO ? size : from;  // a file system without holes: everything is data
}

bool read_block(int fd, char* block, std::size_t count, off_t at) {
  while (count > 0) {
    const ssize_t got = ::pread(fd, block, count, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    block += got;
    at += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Result<UniqueFd> open_folder(int root, const std::string& path) {
  return sys::open_resolved(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, kBeneath);
}

Result<UniqueFd> open_private_folder(int root, const std::string& path) {
  auto folder = open_folder(root, path);
  if (folder || folder.error().errno_value != EACCES || !open_up(root, path, 0700)) return folder;
  return open_folder(root, path);
}

Result<UniqueFd> open_file(int root, const std::string& path) {
  return open_regular(root, path);
}

Result<UniqueFd> open_private_file(int root, const std::string& path) {
  auto file = open_regular(root, path);
  if (file || file.error().errno_value != EACCES || !open_up(root, path, 0400)) return file;
  return open_regular(root, path);
}

Result<std::vector<std::string>> read_names(int folder) {
  UniqueFd copy(::fcntl(folder, F_DUPFD_CLOEXEC, 3));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(copy.valid() ? ::fdopendir(copy.get()) : nullptr,
                                                   ::closedir);
  if (stream) (void)copy.release();  // closedir() closes it
  if (!stream) return fail_errno(ErrorKind::host, "cannot-read", "cannot read a directory");
  ::rewinddir(stream.get());
  std::vector<std::string> names;
  for (errno = 0; const dirent* each = ::readdir(stream.get()); errno = 0)
    if (std::strcmp(each->d_name, ".") != 0 && std::strcmp(each->d_name, "..") != 0)
      names.emplace_back(each->d_name);
  if (errno != 0) return fail_errno(ErrorKind::host, "cannot-read", "cannot read a directory");
  std::ranges::sort(names);
  return names;
}

Result<std::vector<Entry>> read_folder(int folder) {
  std::vector<Entry> entries;
  for (std::string& name : SBX_TRY(read_names(folder))) {
    Entry entry{.name = std::move(name)};
    if (::fstatat(folder, entry.name.c_str(), &entry.facts, AT_SYMLINK_NOFOLLOW) == 0)
      entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::string> read_link(int root, const std::string& path) {
  const UniqueFd link = SBX_TRY(sys::open_resolved(root, path, O_PATH | O_NOFOLLOW, kBeneath));
  std::string text(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(link.get(), "", text.data(), text.size());
  if (size < 0)
    return fail_errno(ErrorKind::host, "cannot-read", "cannot read the link '" + path + "'");
  text.resize(static_cast<std::size_t>(size));
  return text;
}

FileType type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return FileType::folder;
    case S_IFLNK:
      return FileType::link;
    case S_IFIFO:
      return FileType::fifo;
    case S_IFSOCK:
      return FileType::socket;
    case S_IFCHR:
    case S_IFBLK:
      return FileType::device;
    default:
      return FileType::file;
  }
}

bool hides_its_name(const struct stat& facts) {
  return S_ISFIFO(facts.st_mode) || (S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(0, 0));
}

std::string join(const std::string& folder, std::string_view name) {
  if (folder == ".") return std::string(name);
  std::string path = folder;
  path += '/';
  path += name;
  return path;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool same_content(int one, int other, off_t size) {
  std::vector<char> left(kReadAtOnce);
  std::vector<char> right(kReadAtOnce);
  off_t at = 0;
  while (at < size) {
    at = std::min(next_data(one, at, size), next_data(other, at, size));
    if (at >= size) return true;
    const auto count = static_cast<std::size_t>(std::min<off_t>(kReadAtOnce, size - at));
    if (!read_block(one, left.data(), count, at) || !read_block(other, right.data(), count, at) ||
        std::memcmp(left.data(), right.data(), count) != 0)
      return false;
    at += static_cast<off_t>(count);
  }
  return true;
}

bool has_content(int file, std::string_view content) {
  std::vector<char> block(std::min(kReadAtOnce, content.size()));
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t count = std::min(block.size(), content.size() - at);
    if (!read_block(file, block.data(), count, static_cast<off_t>(at)) ||
        std::memcmp(block.data(), content.data() + at, count) != 0)
      return false;
    at += count;
  }
  return true;
}

}  // namespace sbx::workspace
