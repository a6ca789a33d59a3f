#include "cgroup/owned_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "base/held.hpp"
#include "base/random.hpp"
#include "base/sys.hpp"

namespace sbx::cgroup {
namespace {

constexpr std::string_view kPrefix = "sbx-";
constexpr std::size_t kNameLength = 20;
/// `user.` on cgroup v2 since Linux 5.7, for the owner; `trusted.` on both versions, for
/// CAP_SYS_ADMIN only.
constexpr std::array<const char*, 2> kMarks = {"user.sbx.owner", "trusted.sbx.owner"};
constexpr std::string_view kMark = "sbx";
constexpr int kRemovalSteps = 50;  // milliseconds

bool set_mark(int directory) {
  for (const char* const mark : kMarks)
    if (::fsetxattr(directory, mark, kMark.data(), kMark.size(), XATTR_CREATE) == 0) return true;
  return false;
}

bool is_marked(int directory) {
  std::array<char, 8> value{};
  for (const char* const mark : kMarks) {
    const ssize_t size = ::fgetxattr(directory, mark, value.data(), value.size());
    if (size > 0 && std::string_view(value.data(), static_cast<std::size_t>(size)) == kMark)
      return true;
  }
  return false;
}

void remove_if_left(int parent, const char* name) {
  const UniqueFd directory(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid() || !is_marked(directory.get())) return;
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) return;  // its supervisor lives
  sweep("/proc/self/fd/" + std::to_string(directory.get()));     // a session's has groups inside
  (void)held::remove_directory(parent, name);  // EBUSY: processes are left, the next run's turn
}

}  // namespace

std::string unique_name() {
  return std::string(kPrefix) + random_hex();
}

OwnedDirectory& OwnedDirectory::operator=(OwnedDirectory&& other) noexcept {
  if (this == &other) return *this;
  (void)remove();
  path_ = std::move(other.path_);
  directory_ = std::move(other.directory_);
  around_ = other.around_;
  return *this;
}

Result<OwnedDirectory> OwnedDirectory::make_in(int holder, std::string path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (holder < 0 || !held::make_directory(holder, name, 0755))
    return fail_errno(ErrorKind::host, "no-cgroup", "cannot make the cgroup '" + path + "'");
  UniqueFd directory(
      ::openat(holder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid() || ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0 ||
      !set_mark(directory.get())) {
    const int why = errno;
    (void)held::remove_directory(holder, name);
    return fail_errno(ErrorKind::host, "no-cgroup", "cannot mark the cgroup '" + path + "'", why);
  }
  return OwnedDirectory(std::move(path), std::move(directory));
}

Result<OwnedDirectory> OwnedDirectory::make(const std::string& parent, const std::string& name) {
  const UniqueFd holder(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return make_in(holder.get(), parent + "/" + name);
}

Result<OwnedDirectory> OwnedDirectory::make_inner(const std::string& name) const {
  Result<OwnedDirectory> inner = make_in(fd(), path_ + "/" + name);
  if (inner) inner->around_ = fd();
  return inner;
}

int OwnedDirectory::release() {
  path_.clear();
  return directory_.release();
}

bool OwnedDirectory::remove() {
  if (!directory_.valid()) return true;
  const std::size_t slash = path_.rfind('/');
  const std::string name = path_.substr(slash + 1);
  const UniqueFd holder(
      around_ >= 0 ? -1
                   : ::open(path_.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int around = around_ >= 0 ? around_ : holder.get();
  bool removed = around >= 0 && held::remove_directory(around, name);
  for (int step = 0; !removed && errno == EBUSY && step < kRemovalSteps; ++step) {
    sys::sleep_1ms();
    removed = held::remove_directory(around, name);
  }
  removed = removed || errno == ENOENT;
  directory_.reset();
  return removed;
}

void sweep(const std::string& parent) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(parent.c_str()), &::closedir);
  if (!directory) return;
  while (const dirent* const entry = ::readdir(directory.get())) {
    const std::string_view name(entry->d_name);
    if (entry->d_type == DT_DIR && name.size() == kNameLength && name.starts_with(kPrefix))
      remove_if_left(::dirfd(directory.get()), entry->d_name);
  }
}

}  // namespace sbx::cgroup
