#include "workspace/put.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/random.hpp"
#include "plan/files/pattern.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr std::size_t kChunk = 1 << 20;
constexpr off_t kSmall = 65'536;
constexpr off_t kBlock = 512;  // the unit of st_blocks
constexpr std::string_view kTemporary = ".sbx-";
constexpr std::size_t kTemporaryDigits = 16;
constexpr int kLockStep = 10;  // milliseconds

std::unexpected<Error> refused(const std::string& what, const std::string& name) {
  return fail_errno(ErrorKind::host, "cannot-put", "cannot " + what + " '" + name + "'");
}

std::unexpected<Error> refused_content(const std::string& what) {
  return fail_errno(ErrorKind::host, "cannot-put", "cannot " + what + " its content");
}

/// One stretch of stored bytes. Between different file systems copy_file_range answers EXDEV.
Status copy_stretch(int from, int to, off_t begin, off_t end) {
  off_t in = begin;
  off_t out = begin;
  bool plain = false;
  while (in < end) {
    const auto count = std::min<std::size_t>(kChunk, static_cast<std::size_t>(end - in));
    ssize_t got = 0;
    if (!plain) {
      got = ::copy_file_range(from, &in, to, &out, count, 0);
      if (got < 0 &&
          (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) {
        plain = true;
        if (::lseek(to, in, SEEK_SET) < 0) return refused_content("write");
        continue;
      }
    } else {
      got = ::sendfile(to, from, &in, count);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused_content("write");
    if (got == 0) return {};  // shorter than its size was: the size is set at the end
  }
  return {};
}

/// A small file without holes takes two calls: seven otherwise, one of which starts a transaction.
Status copy_small(int from, int to, std::size_t size) {
  std::array<char, kSmall> content{};
  std::size_t read = 0;
  while (read < size) {
    const ssize_t got = ::pread(from, content.data() + read, size - read, static_cast<off_t>(read));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused_content("read");
    if (got == 0) break;
    read += static_cast<std::size_t>(got);
  }
  for (std::size_t written = 0; written < read;) {
    const ssize_t got = ::write(to, content.data() + written, read - written);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused_content("write");
    written += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace

/// Removes what was made under a temporary name unless it was renamed.
class Temporary {
 public:
  explicit Temporary(int folder) : folder_(folder), name_(std::string(kTemporary) + random_hex()) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlinkat(folder_, name_.c_str(), 0);
  }
  [[nodiscard]] const char* name() const { return name_.c_str(); }
  Status rename_to(const std::string& name, const Expected& expected) {
    SBX_TRY(check(name, expected));
    const unsigned flags = expected.what == Expected::What::nothing ? RENAME_NOREPLACE : 0;
    if (::renameat2(folder_, name_.c_str(), folder_, name.c_str(), flags) != 0) {
      if (errno == EEXIST && flags != 0) return replaced(name);
      // A file system without RENAME_NOREPLACE: what was just looked at has to do.
      if (errno != EINVAL || ::renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0)
        return refused("write", name);
    }
    renamed_ = true;
    return {};
  }

 private:
  static std::unexpected<Error> replaced(const std::string& name) {
    return fail(Error{.kind = ErrorKind::host,
                      .code = "replaced",
                      .message = "'" + name + "' changed on the host just now"});
  }

  /// Copying takes its time; from here to the rename it is microseconds.
  [[nodiscard]] Status check(const std::string& name, const Expected& expected) const {
    if (expected.what == Expected::What::anything) return {};
    struct stat now{};
    const bool exists = ::fstatat(folder_, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
    if (expected.what == Expected::What::nothing) return exists ? replaced(name) : Status();
    const struct stat& was = expected.facts;
    const bool same = exists && now.st_ino == was.st_ino &&
                      now.st_ctim.tv_sec == was.st_ctim.tv_sec &&
                      now.st_ctim.tv_nsec == was.st_ctim.tv_nsec;
    return same ? Status() : replaced(name);
  }

  int folder_;
  std::string name_;
  bool renamed_ = false;
};

Status give_to(int file, Owner owner) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return refused("look at", "a copy");
  if (facts.st_uid == owner.uid && facts.st_gid == owner.gid) return {};
  if (::fchown(file, owner.uid, owner.gid) == 0 || facts.st_uid == owner.uid) return {};
  return refused("keep the owner of", "a file");
}

Status copy_content(int from, int to) {
  struct stat facts{};
  if (::fstat(from, &facts) != 0) return refused_content("read");
  if (facts.st_size <= kSmall && facts.st_blocks * kBlock >= facts.st_size)
    return copy_small(from, to, static_cast<std::size_t>(facts.st_size));
  off_t at = 0;
  while (at < facts.st_size) {
    const off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    const off_t begin = data < 0 ? at : data;
    const off_t hole = data < 0 ? facts.st_size : ::lseek(from, begin, SEEK_HOLE);
    const off_t end = hole < 0 ? facts.st_size : hole;
    SBX_TRY(copy_stretch(from, to, begin, end));
    at = end;
  }
  if (::ftruncate(to, facts.st_size) != 0) return refused_content("write");
  return {};
}

Result<UniqueFd> make_folder(int root, const std::string& path, Owner owner) {
  auto folder = open_folder(root, path);
  if (folder || folder.error().errno_value != ENOENT) return folder;
  const UniqueFd holder = SBX_TRY(make_folder(root, folder_of(path), owner));
  const std::string name = name_of(path);
  if (::mkdirat(holder.get(), name.c_str(), 0755) != 0 && errno != EEXIST)
    return refused("make the directory", path);
  folder = open_folder(root, path);
  if (folder) SBX_TRY(give_to(folder->get(), owner));
  return folder;
}

NewFile::NewFile(std::unique_ptr<Temporary> temporary, std::string name, UniqueFd fd)
    : temporary_(std::move(temporary)), name_(std::move(name)), fd_(std::move(fd)) {}
NewFile::NewFile(NewFile&&) noexcept = default;
NewFile& NewFile::operator=(NewFile&&) noexcept = default;
NewFile::~NewFile() = default;

Result<NewFile> NewFile::make(int folder, std::string name, mode_t mode) {
  auto temporary = std::make_unique<Temporary>(folder);
  UniqueFd fd(::openat(folder, temporary->name(),
                       O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid()) return refused("write", name);
  return NewFile(std::move(temporary), std::move(name), std::move(fd));
}

Status NewFile::finish(mode_t mode, std::optional<Owner> owner, const Expected& expected) {
  if (owner) SBX_TRY(give_to(fd_.get(), *owner));
  struct stat facts{};
  const bool has_mode = ::fstat(fd_.get(), &facts) == 0 && (facts.st_mode & 07777) == (mode & 0777);
  if (!has_mode && ::fchmod(fd_.get(), mode & 0777) != 0) return refused("set the mode of", name_);
  return temporary_->rename_to(name_, expected);
}

Status put_file(int source, int folder, const std::string& name, mode_t mode, Owner owner,
                const Expected& expected) {
  NewFile file = SBX_TRY(NewFile::make(folder, name));
  SBX_TRY(copy_content(source, file.fd()));
  return file.finish(mode, owner, expected);
}

Status put_link(const std::string& text, int folder, const std::string& name,
                std::optional<Owner> owner, const Expected& expected) {
  Temporary temporary(folder);
  if (::symlinkat(text.c_str(), folder, temporary.name()) != 0)
    return refused("make the link", name);
  // Nobody reads the owner of a link but `ls`: one that can't be given away stays the caller's.
  if (owner)
    (void)!::fchownat(folder, temporary.name(), owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW);
  return temporary.rename_to(name, expected);
}

bool is_temporary(std::string_view name) {
  if (!name.starts_with(kTemporary)) return false;
  name.remove_prefix(kTemporary.size());
  return name.size() == kTemporaryDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool has_temporary_name(std::string_view path) {
  return std::ranges::any_of(plan::parts_of(path), is_temporary);
}

void remove_temporaries(int folder) {
  const auto names = read_names(folder);
  if (!names) return;  // a caller that can't list it has written nothing to it
  for (const std::string& name : *names) {
    struct stat facts{};
    if (is_temporary(name) && ::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode)))
      (void)::unlinkat(folder, name.c_str(), 0);  // one that can't be removed does no harm
  }
}

Status lock_folder(int folder, const Waiting& waiting) {
  bool first = true;
  while (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK)
      return fail_errno(ErrorKind::host, "cannot-lock",
                        "cannot lock the directory that is written to");
    if (std::exchange(first, false) && waiting.begins) waiting.begins();
    // Signals may be held back, and a flock(2) that waits would not see them.
    if (waiting.stop && waiting.stop())
      return fail(Error{.kind = ErrorKind::host,
                        .code = "stopped",
                        .message = "interrupted while another sbx wrote to the same directory"});
    (void)::poll(nullptr, 0, kLockStep);
  }
  return {};
}

}  // namespace sbx::workspace
