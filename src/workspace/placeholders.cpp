#include "workspace/placeholders.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr int kAttempts = 5;

/// A file that an sbx left when it was killed is known by its content; a directory, or an empty
/// file, is not.
bool is_left_behind(const plan::PlannedPlaceholder& planned, int file) {
  struct stat facts{};
  return !planned.content.empty() && ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
         static_cast<std::size_t>(facts.st_size) == planned.content.size() &&
         has_content(file, planned.content);
}

/// The .git that the plan saw, reached without a link: its owner may have put another in its place.
UniqueFd open_repository(const plan::PlannedPlaceholder& planned) {
  auto directory = sys::open_resolved(AT_FDCWD, planned.directory, O_RDONLY | O_DIRECTORY,
                                      RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  struct stat facts{};
  const bool is_it = directory && ::fstat(directory->get(), &facts) == 0 &&
                     facts.st_dev == planned.device && facts.st_ino == planned.inode;
  return is_it ? std::move(*directory) : UniqueFd();
}

}  // namespace

/// Makes it if nothing is there; false if something is, or it can't be made.
bool Placeholders::make(const plan::PlannedPlaceholder& planned, Made& made) {
  struct stat above{};
  if (::fstat(made.directory.get(), &above) != 0) return false;
  const Owner owner{.uid = above.st_uid, .gid = above.st_gid};
  if (planned.is_directory) {
    auto opened = held::make_and_open(made.directory.get(), planned.name, 0755);
    if (!opened) return false;
    made.lock = std::move(*opened);
  } else {
    made.lock = UniqueFd(::openat(made.directory.get(), planned.name.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!made.lock.valid()) return false;
    (void)sys::write_all(made.lock.get(), planned.content);  // an empty one is sealed as well
  }
  made.is_ours = true;
  (void)give_to(made.lock.get(), owner,
                planned.name);  // it stays the caller's, and is removed all the same
  return made.lock.valid();
}

/// Opens what is there.
bool Placeholders::open(const plan::PlannedPlaceholder& planned, Made& made) {
  made.lock = UniqueFd(::openat(made.directory.get(), planned.name.c_str(),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  made.is_ours = made.lock.valid() && is_left_behind(planned, made.lock.get());
  return made.lock.valid();
}

Placeholders::Placeholders(plan::Plan& plan) {
  for (const plan::PlannedPlaceholder& planned : plan.placeholders) {
    Made made{.directory = open_repository(planned), .name = planned.name, .lock = {}};
    made.is_directory = planned.is_directory;
    bool is_there = false;
    for (int i = 0; i < kAttempts && made.directory.valid() && !is_there; ++i) {
      if (!make(planned, made) && !open(planned, made)) break;
      // Another sbx may be removing it: then it is another file, or none, as soon as the lock is
      // had.
      is_there = ::flock(made.lock.get(), LOCK_SH) == 0 &&
                 held::is_named(made.directory.get(), made.name, made.lock.get());
    }
    if (is_there) {
      all_.push_back(std::move(made));
      continue;
    }
    struct stat facts{};
    if (made.directory.valid() &&
        ::fstatat(made.directory.get(), made.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
      continue;  // a link, or a file that the caller can't open: it can be sealed
    std::erase_if(plan.mounts, [&](const plan::Mount& mount) {
      return mount.target == planned.target && mount.kind() == MountKind::read_only;
    });
    for (plan::LiveDirectory& live : plan.live)
      std::erase_if(live.guarded, [&](const std::string& path) {
        return live.source + "/" + path == planned.directory + "/" + planned.name;
      });
  }
}

void Placeholders::remove(const Made& made) {
  if (!made.is_ours || ::flock(made.lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  if (!held::is_named(made.directory.get(), made.name, made.lock.get())) return;
  // A directory that somebody filled meanwhile stays.
  (void)(made.is_directory ? held::remove_directory(made.directory.get(), made.name)
                           : held::remove_file(made.directory.get(), made.name));
}

Placeholders::~Placeholders() {
  for (const Made& made : all_) remove(made);
}

}  // namespace sbx::workspace
