#include "workspace/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <utility>

#include "base/held.hpp"

namespace sbx::workspace {
namespace {

constexpr std::size_t kReadAtOnce = 65'536;

std::unexpected<Error> not_a_file(const std::string& path) {
  return fail(Error{.kind = ErrorKind::host,
                    .code = "not-a-file",
                    .message = "'" + path + "' is not a regular file"});
}

bool is_regular(int file) {
  struct stat facts{};
  return ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
}

Result<std::string> text_of(int link, const std::string& path) {
  std::string text(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(link, "", text.data(), text.size());
  if (size < 0)
    return fail_errno(ErrorKind::host, "cannot-read", "cannot read the link '" + path + "'");
  text.resize(static_cast<std::size_t>(size));
  return text;
}

/// O_PATH of one name. Its directory must be searchable for that moment only.
Result<UniqueFd> step(int directory, const std::string& name) {
  auto next = held::open_beneath(directory, name, O_PATH);
  if (next || next.error().errno_value != EACCES) return next;
  const Lent search(directory, S_IXUSR);
  return held::open_beneath(directory, name, O_PATH);
}

/// O_PATH of a path through directories that may be closed.
Result<UniqueFd> walk(int root, const std::string& path) {
  UniqueFd at(::fcntl(root, F_DUPFD_CLOEXEC, 3));
  for (std::size_t begin = 0; path != "." && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    at = SBX_TRY(step(at.get(), path.substr(begin, end - begin)));
    begin = end + 1;
  }
  return at;
}

/// Opens a held file again, for reading, where its mode may be closed.
Result<UniqueFd> open_lent(int file, int flags, mode_t bits) {
  const Lent lent(file, bits);
  return held::open_again(file, flags);
}

constexpr mode_t kToList = S_IRUSR | S_IXUSR;

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

Result<UniqueFd> open_directory(int root, const std::string& path) {
  return held::open_beneath(root, path, O_RDONLY | O_DIRECTORY);
}

Result<UniqueFd> open_file(int root, const std::string& path) {
  auto file = held::open_beneath(root, path, O_RDONLY);
  if (file && !is_regular(file->get())) return not_a_file(path);
  return file;
}

Lent::Lent(int file, mode_t bits) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return;
  before_ = facts.st_mode & 07777;
  lent_ = before_ | bits;
  if (lent_ != before_ && held::set_mode(file, lent_)) file_ = file;
}

Lent::Lent(Lent&& other) noexcept
    : file_(std::exchange(other.file_, -1)), before_(other.before_), lent_(other.lent_) {}

Lent& Lent::operator=(Lent&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  file_ = std::exchange(other.file_, -1);
  before_ = other.before_;
  lent_ = other.lent_;
  return *this;
}

void Lent::give_back() {
  const int file = std::exchange(file_, -1);
  struct stat facts{};
  if (file >= 0 && ::fstat(file, &facts) == 0 && (facts.st_mode & 07777) == lent_)
    (void)held::set_mode(file, before_);  // its owner could set it a moment ago
}

/// faccessat(2) searches the directory for ".": it is refused without that permission.
PrivateDirectory::PrivateDirectory(UniqueFd fd) : fd_(std::move(fd)) {
  if (fd_.valid() && ::faccessat(fd_.get(), ".", R_OK | X_OK, AT_EACCESS) != 0)
    lent_ = Lent(fd_.get(), kToList);
}

PrivateDirectory& PrivateDirectory::operator=(PrivateDirectory&& other) noexcept {
  lent_ = std::move(other.lent_);  // before the descriptor goes
  fd_ = std::move(other.fd_);
  return *this;
}

UniqueFd PrivateDirectory::release() && {
  lent_.give_back();
  return std::move(fd_);
}

Result<PrivateDirectory> open_private_directory(int root, const std::string& path) {
  auto directory = open_directory(root, path);
  if (!directory && directory.error().errno_value == EACCES) {
    const UniqueFd place = SBX_TRY(walk(root, path));
    directory = open_lent(place.get(), O_RDONLY | O_DIRECTORY, kToList);
  }
  if (!directory) return std::unexpected(std::move(directory).error());
  return PrivateDirectory(std::move(*directory));
}

Result<UniqueFd> open_private_file(int root, const std::string& path) {
  auto file = open_file(root, path);
  if (file || file.error().errno_value != EACCES) return file;
  const UniqueFd place = SBX_TRY(walk(root, path));
  if (!is_regular(place.get())) return not_a_file(path);
  return open_lent(place.get(), O_RDONLY, S_IRUSR);
}

Result<std::string> read_private_link(int root, const std::string& path) {
  auto text = read_link(root, path);
  if (text || text.error().errno_value != EACCES) return text;
  const UniqueFd link = SBX_TRY(walk(root, path));
  return text_of(link.get(), path);
}

Result<std::vector<std::string>> read_names(int directory) {
  UniqueFd copy(::fcntl(directory, F_DUPFD_CLOEXEC, 3));
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

Result<std::vector<Entry>> read_directory(int directory) {
  std::vector<Entry> entries;
  for (std::string& name : SBX_TRY(read_names(directory))) {
    Entry entry{.name = std::move(name)};
    if (::fstatat(directory, entry.name.c_str(), &entry.facts, AT_SYMLINK_NOFOLLOW) == 0)
      entries.push_back(std::move(entry));
    else if (errno == EACCES)  // the directory can be listed, but not searched
      return fail_errno(ErrorKind::host, "cannot-read", "cannot read a directory");
  }
  return entries;
}

Result<std::string> read_link(int root, const std::string& path) {
  const UniqueFd link = SBX_TRY(held::open_beneath(root, path, O_PATH));
  return text_of(link.get(), path);
}

FileType type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return FileType::directory;
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

std::string join(const std::string& directory, std::string_view name) {
  if (directory == ".") return std::string(name);
  std::string path = directory;
  path += '/';
  path += name;
  return path;
}

std::string directory_of(const std::string& path) {
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
