#include "workspace/put.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/held.hpp"
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

std::unexpected<Error> refused(const std::string& what, const std::string& name) {
  return fail_errno(ErrorKind::host, "cannot-put", "cannot " + what + " '" + name + "'");
}

std::unexpected<Error> refused_content(const std::string& what) {
  return fail_errno(ErrorKind::host, "cannot-put", "cannot " + what + " its content");
}

/// One stretch of stored bytes. Between different file systems copy_file_range answers EXDEV.
Status copy_stretch(int from, int to, off_t begin, off_t end, const Copied& copied,
                    const std::function<bool()>& is_cancelled) {
  off_t in = begin;
  off_t out = begin;
  bool plain = false;
  while (in < end) {
    if (is_cancelled && is_cancelled()) {
      errno = ECANCELED;
      return refused_content("write");
    }
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
    if (copied) copied(static_cast<std::uint64_t>(got));
  }
  return {};
}

/// A small file without holes takes two calls: seven otherwise, one of which starts a transaction.
Status copy_small(int from, int to, std::size_t size, const Copied& copied) {
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
  if (copied && read > 0) copied(read);
  return {};
}

}  // namespace

/// Removes what was made under a temporary name unless it was renamed.
class Temporary {
 public:
  explicit Temporary(int directory) : directory_(directory), name_(temporary_name()) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) (void)held::remove_file(directory_, name_);  // nothing can be done about it here
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  Status rename_to(const std::string& name, const Expected& expected) {
    SBX_TRY(check(name, expected));
    const held::Name from{directory_, name_};
    const held::Name to{directory_, name};
    const bool to_free = expected.what == Expected::What::nothing;
    renamed_ = to_free ? held::rename_to_free(from, to) : held::rename(from, to);
    if (!renamed_ && to_free && errno == EEXIST) return replaced(name);
    // A file system without RENAME_NOREPLACE: what was just looked at has to do.
    if (!renamed_ && to_free && errno == EINVAL) renamed_ = held::rename(from, to);
    return renamed_ ? Status() : refused("write", name);
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
    const bool exists = ::fstatat(directory_, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
    if (expected.what == Expected::What::nothing) return exists ? replaced(name) : Status();
    const struct stat& was = expected.facts;
    const bool same = exists && now.st_ino == was.st_ino &&
                      now.st_ctim.tv_sec == was.st_ctim.tv_sec &&
                      now.st_ctim.tv_nsec == was.st_ctim.tv_nsec;
    return same ? Status() : replaced(name);
  }

  int directory_;
  std::string name_;
  bool renamed_ = false;
};

std::optional<Owner> owner_in(const struct stat& directory) {
  const bool is_shared = (directory.st_mode & (S_ISVTX | S_ISGID | S_IWGRP | S_IWOTH)) != 0;
  if (::geteuid() != 0 || directory.st_uid == 0 || is_shared) return std::nullopt;
  return Owner{directory.st_uid, directory.st_gid};
}

mode_t mode_in_place(int directory, const std::string& name, mode_t wanted, mode_t umask) {
  struct stat before{};
  const bool replaces = ::fstatat(directory, name.c_str(), &before, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISREG(before.st_mode);
  return replaces ? before.st_mode & 0777 : wanted & 0777 & ~umask;
}

Status give_to(int file, Owner owner, const std::string& name) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return refused("look at", name);
  if (facts.st_uid == owner.uid && facts.st_gid == owner.gid) return {};
  if (held::set_owner(file, owner.uid, owner.gid) || facts.st_uid == owner.uid) return {};
  return refused("keep the owner of", name);
}

Status copy_content(int from, int to, const Copied& copied,
                    const std::function<bool()>& is_cancelled) {
  struct stat facts{};
  if (::fstat(from, &facts) != 0) return refused_content("read");
  if (facts.st_size <= kSmall && facts.st_blocks * kBlock >= facts.st_size)
    return copy_small(from, to, static_cast<std::size_t>(facts.st_size), copied);
  off_t at = 0;
  while (at < facts.st_size) {
    const off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    const off_t begin = data < 0 ? at : data;
    const off_t hole = data < 0 ? facts.st_size : ::lseek(from, begin, SEEK_HOLE);
    const off_t end = hole < 0 ? facts.st_size : hole;
    SBX_TRY(copy_stretch(from, to, begin, end, copied, is_cancelled));
    at = end;
  }
  if (::ftruncate(to, facts.st_size) != 0) return refused_content("write");
  return {};
}

Result<UniqueFd> make_directory(int root, const std::string& path, std::optional<Owner> owner) {
  auto directory = open_directory(root, path);
  if (directory || directory.error().errno_value != ENOENT) return directory;
  const UniqueFd holder = SBX_TRY(make_directory(root, directory_of(path), owner));
  const std::string name = name_of(path);
  auto made = held::make_and_open(holder.get(), name, 0755);
  if (!made && made.error().errno_value == EEXIST) return open_directory(root, path);
  if (made && owner) SBX_TRY(give_to(made->get(), *owner, path));
  return made;
}

namespace {

constexpr int kMostAttempts = 8;

/// Locks a new file against remove_dead_temporaries(), unless it was removed before that. A file
/// system without locks keeps the file too.
bool is_kept(int file) {
  if (::flock(file, LOCK_SH | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat facts{};
  return ::fstat(file, &facts) == 0 && facts.st_nlink > 0;
}

}  // namespace

NewFile::NewFile(std::unique_ptr<Temporary> temporary, std::string name, UniqueFd fd)
    : temporary_(std::move(temporary)), name_(std::move(name)), fd_(std::move(fd)) {}
NewFile::NewFile(NewFile&&) noexcept = default;
NewFile& NewFile::operator=(NewFile&&) noexcept = default;
NewFile::~NewFile() = default;

Result<NewFile> NewFile::make(int directory, std::string name, mode_t mode) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    auto temporary = std::make_unique<Temporary>(directory);
    UniqueFd fd(::openat(directory, temporary->name().c_str(),
                         O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!fd.valid()) break;
    if (is_kept(fd.get())) return NewFile(std::move(temporary), std::move(name), std::move(fd));
  }
  return refused("write", name);
}

Status NewFile::finish(mode_t mode, std::optional<Owner> owner, const Expected& expected) {
  if (owner) SBX_TRY(give_to(fd_.get(), *owner, name_));
  struct stat facts{};
  const bool has_mode = ::fstat(fd_.get(), &facts) == 0 && (facts.st_mode & 07777) == (mode & 0777);
  if (!has_mode && !held::set_mode(fd_.get(), mode & 0777))
    return refused("set the mode of", name_);
  return temporary_->rename_to(name_, expected);
}

Status put_file(int source, int directory, const std::string& name, mode_t mode,
                std::optional<Owner> owner, const Expected& expected, const Copied& copied) {
  NewFile file = SBX_TRY(NewFile::make(directory, name));
  SBX_TRY(copy_content(source, file.fd(), copied));
  return file.finish(mode, owner, expected);
}

namespace {

/// Only a link that is the caller's: whatever else has the name now was not made here.
void give_link(int directory, const std::string& name, Owner owner) {
  const auto link = held::open_name(directory, name, O_PATH);
  struct stat facts{};
  if (link && ::fstat(link->get(), &facts) == 0 && S_ISLNK(facts.st_mode) &&
      facts.st_uid == ::geteuid() && facts.st_nlink == 1)
    (void)held::set_owner(link->get(), owner.uid, owner.gid);
}

}  // namespace

Status put_link(const std::string& text, int directory, const std::string& name,
                std::optional<Owner> owner, const Expected& expected) {
  Temporary temporary(directory);
  if (!held::make_symlink(text, directory, temporary.name())) return refused("make the link", name);
  // Nobody reads the owner of a link but `ls`: one that can't be given away stays the caller's.
  if (owner) give_link(directory, temporary.name(), *owner);
  return temporary.rename_to(name, expected);
}

std::string temporary_name() {
  return std::string(kTemporary) + random_hex();
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

void remove_temporaries(int directory) {
  const auto names = read_names(directory);
  if (!names) return;  // a caller that can't list it has written nothing to it
  for (const std::string& name : *names) {
    struct stat facts{};
    if (is_temporary(name) &&
        ::fstatat(directory, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode)))
      (void)held::remove_file(directory, name);  // one that can't be removed does no harm
  }
}

/// NewFile holds a lock on its file from the start. A file that has no lock for a moment after it
/// was made is looked at by its maker once more, see is_kept().
void remove_dead_temporaries(int directory) {
  const auto names = read_names(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!is_temporary(name)) continue;
    const auto file = held::open_name(directory, name, O_RDONLY);
    struct stat facts{};
    if (file && ::fstat(file->get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
        ::flock(file->get(), LOCK_EX | LOCK_NB) == 0)
      (void)held::remove_file(directory, name);  // one that can't be removed does no harm
  }
}

}  // namespace sbx::workspace
