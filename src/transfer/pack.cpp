#include "transfer/pack.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <span>
#include <utility>

#include "base/sys.hpp"
#include "workspace/tree.hpp"

namespace sbx::transfer {
namespace {

constexpr std::size_t kSmall = 1 << 16;
constexpr int kToRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::uint64_t depth_of(std::string_view path) {
  return static_cast<std::uint64_t>(std::ranges::count(path, '/'));
}

std::string join(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

bool is_special(mode_t mode) {
  return !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode);
}

std::uint32_t last_errno() {
  return static_cast<std::uint32_t>(errno);
}

/// Bytes at the start of a file, as many as fit.
ssize_t read_start(int file, std::span<char> block) {
  std::size_t count = 0;
  while (count < block.size()) {
    const ssize_t got =
        ::pread(file, block.data() + count, block.size() - count, static_cast<off_t>(count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(count);
}

}  // namespace

Result<UniqueFd> open_directory(int root, const std::string& path) {
  UniqueFd at = SBX_TRY(sys::open_at(root, ".", O_PATH | O_DIRECTORY));
  for (std::size_t begin = 0; path != "." && begin <= path.size();) {
    const std::size_t slash = std::min(path.find('/', begin), path.size());
    at = SBX_TRY(sys::open_at(at.get(), path.substr(begin, slash - begin),
                              O_PATH | O_DIRECTORY | O_NOFOLLOW));
    begin = slash + 1;
  }
  return sys::open_at(at.get(), ".", O_RDONLY | O_DIRECTORY);
}

Status Packer::leave(const std::string& path, Reason reason, std::uint32_t number) {
  if (is_failure(reason)) ++sum_.failures;
  if (how_.leave) {
    how_.leave(path, reason, number);
    return {};
  }
  return writer_.put({.kind = FrameKind::fault,
                      .reason = reason,
                      .number = number,
                      .name = path.substr(0, kLongestName)});
}

/// The other end drops what it has of the file.
Status Packer::take_back(const std::string& path, Reason reason, std::uint32_t number) {
  --sum_.files;
  ++sum_.failures;
  if (how_.leave) how_.leave(path, reason, number);
  return writer_.put({.kind = FrameKind::fault, .reason = reason, .number = number, .name = path});
}

Status Packer::send(const std::string& path, const std::string& name) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return leave(path, Reason::cannot_read, last_errno());
  if (is_special(facts.st_mode)) return leave(path, reason_for(workspace::type_of(facts.st_mode)));
  if (!name.empty() && !is_sound_path(name)) return leave(path, Reason::too_long);
  if (S_ISDIR(facts.st_mode)) return send_tree(path, name);
  const UniqueFd file(::open(path.c_str(), kToRead & ~O_NOFOLLOW));
  if (!file.valid() || ::fstat(file.get(), &facts) != 0)
    return leave(path, Reason::cannot_read, last_errno());
  if (!S_ISREG(facts.st_mode)) return leave(path, Reason::cannot_read, EAGAIN);
  return send_file(file.get(), facts, name);
}

Status Packer::send_tree(const std::string& path, const std::string& name) {
  const UniqueFd tree(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat facts{};
  if (!tree.valid() || ::fstat(tree.get(), &facts) != 0)
    return leave(path, Reason::cannot_read, last_errno());
  if (!name.empty())
    SBX_TRY(writer_.put({.kind = FrameKind::directory,
                         .mode = facts.st_mode & 0777,
                         .modified = facts.st_mtim,
                         .name = name}));
  std::vector<std::string> waiting{"."};
  while (!waiting.empty()) {
    const std::string below = std::move(waiting.back());
    waiting.pop_back();
    SBX_TRY(send_directory(tree.get(), below, name, waiting));
  }
  return {};
}

/// `below`: in the tree; `name`: of the tree in the archive.
Status Packer::send_directory(int tree, const std::string& below, const std::string& name,
                              std::vector<std::string>& waiting) {
  const std::string path = below == "." ? name : join(name, below);
  const auto directory = open_directory(tree, below);
  const auto names = directory
                         ? workspace::read_names(directory->get())
                         : Result<std::vector<std::string>>(std::unexpected(directory.error()));
  if (!names)
    return leave(path.empty() ? "." : path, Reason::cannot_read,
                 static_cast<std::uint32_t>(names.error().errno_value));
  if (!names->empty() && depth_of(join(path, names->front())) > how_.max_depth)
    return leave(path, Reason::too_deep);
  const std::size_t first = waiting.size();
  for (const std::string& each : *names)
    SBX_TRY(send_entry(directory->get(), each, join(path, each),
                       below == "." ? each : join(below, each), waiting));
  std::reverse(waiting.begin() + static_cast<std::ptrdiff_t>(first), waiting.end());
  return {};
}

Status Packer::send_entry(int directory, const std::string& entry, const std::string& path,
                          const std::string& below, std::vector<std::string>& waiting) {
  if (path.size() > kLongestName) return leave(path, Reason::too_long);
  struct stat facts{};
  if (::fstatat(directory, entry.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status() : leave(path, Reason::cannot_read, last_errno());
  if (is_special(facts.st_mode)) return leave(path, reason_for(workspace::type_of(facts.st_mode)));
  if (S_ISLNK(facts.st_mode))
    return send_link(directory, entry, path, facts, path.size() == below.size());
  if (S_ISDIR(facts.st_mode)) {
    if (facts.st_ino == how_.target.st_ino && facts.st_dev == how_.target.st_dev)
      return leave(path, Reason::itself);
    waiting.push_back(below);
    return writer_.put({.kind = FrameKind::directory,
                        .mode = facts.st_mode & 0777,
                        .modified = facts.st_mtim,
                        .name = path});
  }
  // Another file may have taken the name: opening a FIFO this way does not wait, and it is not
  // read.
  const UniqueFd file(::openat(directory, entry.c_str(), kToRead));
  if (!file.valid() || ::fstat(file.get(), &facts) != 0)
    return leave(path, Reason::cannot_read, last_errno());
  if (!S_ISREG(facts.st_mode)) return leave(path, Reason::cannot_read, EAGAIN);
  return send_file(file.get(), facts, path);
}

/// `whole_root`: the tree has no name of its own, so that its root is the place that links must not
/// leave.
Status Packer::send_link(int directory, const std::string& entry, const std::string& path,
                         const struct stat& facts, bool whole_root) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlinkat(directory, entry.c_str(), text.data(), text.size());
  if (size <= 0) return leave(path, Reason::cannot_read, last_errno());
  const std::string_view target(text.data(), static_cast<std::size_t>(size));
  if (how_.links == Links::inside) {
    const std::string_view in_tree =
        whole_root ? std::string_view(path) : std::string_view(path).substr(path.find('/') + 1);
    if (!stays_inside(in_tree, target)) return leave(path, Reason::leads_out);
  }
  return writer_.put({.kind = FrameKind::link,
                      .modified = facts.st_mtim,
                      .name = path,
                      .text = std::string(target)});
}

Status Packer::send_file(int file, const struct stat& facts, const std::string& path) {
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size > how_.max_file_bytes) return leave(path, Reason::too_large);
  return size <= kSmall ? send_small(file, facts, path) : send_large(file, facts, path);
}

/// Read first, announced then: files of /proc have no size.
Status Packer::send_small(int file, const struct stat& facts, const std::string& path) {
  std::array<char, kSmall> block{};  // NOLINT: on the stack, as most files are small
  const ssize_t size = read_start(file, block);
  if (size < 0) return leave(path, Reason::cannot_read, last_errno());
  const bool has_more = facts.st_size == 0 && static_cast<std::size_t>(size) == block.size();
  const auto whole = has_more ? unsized_content(file, 0, 0) : Result<std::string>(std::string());
  if (!whole)
    return leave(path, Reason::cannot_read, static_cast<std::uint32_t>(whole.error().errno_value));
  if (whole->size() > how_.max_file_bytes) return leave(path, Reason::too_large);
  const std::string_view content =
      has_more ? std::string_view(*whole)
               : std::string_view(block.data(), static_cast<std::size_t>(size));
  ++sum_.files;
  sum_.bytes += content.size();
  return put_content(writer_, facts, path, content);
}

/// What is written to the file's end meanwhile is not sent.
Status Packer::send_large(int file, const struct stat& facts, const std::string& path) {
  const off_t size = facts.st_size;
  ++sum_.files;
  SBX_TRY(writer_.put({.kind = FrameKind::file,
                       .mode = facts.st_mode & 0777,
                       .size = static_cast<std::uint64_t>(size),
                       .modified = facts.st_mtim,
                       .name = path}));
  for (off_t at = 0; at < size;) {
    off_t data = ::lseek(file, at, SEEK_DATA);
    if (data < 0) data = errno == ENXIO ? size : at;  // or no holes are known here
    data = std::min(data, size);
    if (data > at) {
      struct stat now{};
      if (::fstat(file, &now) != 0 || now.st_size < size) return take_back(path, Reason::shrank, 0);
      SBX_TRY(
          writer_.put({.kind = FrameKind::hole, .size = static_cast<std::uint64_t>(data - at)}));
      at = data;
    }
    if (at == size) break;
    off_t end = ::lseek(file, at, SEEK_HOLE);
    end = end <= at ? size : std::min(end, size);
    while (at < end) {
      const auto count = std::min<std::uint64_t>(kChunk, static_cast<std::uint64_t>(end - at));
      SBX_TRY(writer_.put({.kind = FrameKind::data, .size = count}));
      const Writer::Read read = SBX_TRY(writer_.bytes_of(file, at, count));
      if (read.bytes < count)
        return take_back(path, read.errno_value == 0 ? Reason::shrank : Reason::cannot_read,
                         static_cast<std::uint32_t>(read.errno_value));
      at += static_cast<off_t>(count);
    }
  }
  sum_.bytes += static_cast<std::uint64_t>(size);
  return writer_.put({.kind = FrameKind::complete});
}

Result<std::string> unsized_content(int file, std::uint64_t offset, std::uint64_t most) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  std::string content;
  std::vector<char> block(kChunk);
  for (std::uint64_t at = 0; most == 0 || content.size() < most;) {
    const ssize_t got = ::read(file, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::host, "", "", errno);
    if (got == 0) break;
    const auto count = static_cast<std::uint64_t>(got);
    const std::uint64_t before = std::min(count, offset > at ? offset - at : 0);
    content.append(block.data() + before, static_cast<std::size_t>(count - before));
    at += count;
    if (content.size() > kMost || at > kMost + offset)
      return fail_errno(ErrorKind::host, "", "", EFBIG);
  }
  if (most > 0 && content.size() > most) content.resize(static_cast<std::size_t>(most));
  return content;
}

Status put_content(Writer& writer, const struct stat& facts, const std::string& name,
                   std::string_view content) {
  SBX_TRY(writer.put({.kind = FrameKind::file,
                      .mode = facts.st_mode & 0777,
                      .size = content.size(),
                      .modified = facts.st_mtim,
                      .name = name}));
  while (!content.empty()) {
    const std::string_view part = content.substr(0, kChunk);
    SBX_TRY(writer.put({.kind = FrameKind::data, .size = part.size()}));
    SBX_TRY(writer.bytes(part));
    content.remove_prefix(part.size());
  }
  return writer.put({.kind = FrameKind::complete});
}

}  // namespace sbx::transfer
