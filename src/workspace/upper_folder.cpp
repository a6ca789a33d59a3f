#include "workspace/upper_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/sys.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr const char* kPrefix = "upper-";

std::string random_name() {
  std::uint64_t number = 0;
  (void)!::getrandom(&number, sizeof number, 0);
  char name[32];
  std::snprintf(name, sizeof name, "%s%016llx", kPrefix, static_cast<unsigned long long>(number));
  return name;
}

Error cannot_make(const std::string& path, int error) {
  return {.kind = ErrorKind::host,
          .code = "no-upper-folder",
          .message =
              "this kernel's tmpfs can't hold what is written over a folder (before Linux "
              "6.6), and no folder for it can be made in '" +
              path + "'",
          .errno_value = error,
          .hint =
              "set HOME to a folder of yours on a disk, or use --workspace DIR:read-only or "
              "DIR:read-write"};
}

Result<UniqueFd> open_parent(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    (void)::mkdir(path.substr(0, at).c_str(), 0700);
  (void)::mkdir(path.c_str(), 0700);
  auto parent = sys::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!parent) return fail(cannot_make(path, parent.error().errno_value));
  struct stat facts{};
  if (::fstat(parent->get(), &facts) != 0 || facts.st_uid != ::geteuid() ||
      (facts.st_mode & 022) != 0)
    return fail(cannot_make(path, EPERM));
  return parent;
}

/// Removes what is no folder from one, and moves its folders to `top` under new names.
void flatten(int top, int folder, std::uint64_t& moved) {
  (void)::fchmod(folder, 0700);
  const auto entries = read_folder(folder);
  if (!entries) return;
  for (const Entry& entry : *entries) {
    if (!S_ISDIR(entry.facts.st_mode)) {
      (void)::unlinkat(folder, entry.name.c_str(), 0);
      continue;
    }
    (void)::fchmodat(folder, entry.name.c_str(), 0700, 0);  // overlayfs leaves a 0000 one
    if (folder == top || ::unlinkat(folder, entry.name.c_str(), AT_REMOVEDIR) == 0) continue;
    const std::string name = ".sbx-" + std::to_string(moved++);
    (void)::renameat(folder, entry.name.c_str(), top, name.c_str());
  }
}

/// Everything below, whatever names and modes the program left, and however deep: two descriptors
/// are enough. Never through a link.
void empty(int top) {
  std::uint64_t moved = 0;
  flatten(top, top, moved);
  for (auto entries = read_folder(top); entries && !entries->empty(); entries = read_folder(top)) {
    std::size_t removed = 0;
    for (const Entry& entry : *entries) {
      if (const auto folder = open_folder(top, entry.name)) flatten(top, folder->get(), moved);
      if (::unlinkat(top, entry.name.c_str(), AT_REMOVEDIR) == 0) ++removed;
    }
    if (removed == 0) return;  // what is left is not this process's to remove
  }
}

void remove(int parent, const UniqueFd& folder, const std::string& name) {
  empty(folder.get());
  (void)::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

/// Those whose lock nobody holds: their supervisors are dead.
void sweep(int parent) {
  const auto entries = read_folder(parent);
  if (!entries) return;
  for (const Entry& entry : *entries) {
    if (!entry.name.starts_with(kPrefix) || !S_ISDIR(entry.facts.st_mode)) continue;
    const auto folder = open_folder(parent, entry.name);
    if (folder && ::flock(folder->get(), LOCK_EX | LOCK_NB) == 0)
      remove(parent, *folder, entry.name);
  }
}

}  // namespace

bool tmpfs_keeps_attributes() {
  const UniqueFd file(::memfd_create("sbx", MFD_CLOEXEC));  // lies on a tmpfs of the kernel's own
  return file.valid() && ::fsetxattr(file.get(), "user.sbx", "y", 1, 0) == 0;
}

Result<UpperFolder> UpperFolder::make(const std::string& state_folder, uid_t owner) {
  if (state_folder.empty()) return fail(cannot_make("~/.local/state/sbx", ENOENT));
  UpperFolder made;
  made.parent_ = SBX_TRY(open_parent(state_folder));
  sweep(made.parent_.get());
  const std::string name = random_name();
  if (::mkdirat(made.parent_.get(), name.c_str(), 0700) != 0)
    return fail(cannot_make(state_folder, errno));
  made.name_ = name;
  made.folder_ = SBX_TRY(open_folder(made.parent_.get(), name));
  if (::flock(made.folder_.get(), LOCK_EX | LOCK_NB) != 0 ||
      (owner != static_cast<uid_t>(-1) && ::fchown(made.folder_.get(), owner, owner) != 0))
    return fail(cannot_make(state_folder, errno));
  return made;
}

UpperFolder::UpperFolder(UpperFolder&& other) noexcept
    : parent_(std::move(other.parent_)),
      folder_(std::move(other.folder_)),
      name_(std::exchange(other.name_, {})) {}

UpperFolder& UpperFolder::operator=(UpperFolder&& other) noexcept {
  std::swap(parent_, other.parent_);
  std::swap(folder_, other.folder_);
  std::swap(name_, other.name_);
  return *this;
}

UpperFolder::~UpperFolder() {
  if (folder_.valid() && !name_.empty()) remove(parent_.get(), folder_, name_);
}

}  // namespace sbx::workspace
