#include "workspace/shared_memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "plan/tier/shared_memory.hpp"
#include "workspace/disk.hpp"
#include "workspace/tree.hpp"
#include "workspace/used_files.hpp"

namespace sbx::workspace {
namespace {

std::unexpected<Error> not_lent(std::string message, int errno_value = 0) {
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-shared-memory",
                    .message = std::move(message),
                    .errno_value = errno_value,
                    .retry = Retry::without_shared_memory});
}

/// In one that counts, a program can't take memory unseen, by a file without a name either.
bool counts_its_use(int place) {
  struct statfs facts{};
  return ::fstatfs(place, &facts) == 0 && facts.f_type == TMPFS_MAGIC && facts.f_blocks > 0 &&
         facts.f_files > 0;
}

bool is_everybodys(int place) {
  struct stat facts{};
  return ::fstat(place, &facts) == 0 && (facts.st_mode & 01777) == 01777;
}

/// What lies in it. The sticky bit keeps others from giving such a name to another file meanwhile.
struct Files {
  std::vector<Entry> own;           ///< of that user
  std::vector<std::string> others;  ///< names
};

Files files_in(int place, uid_t uid) {
  Files found;
  auto entries = read_directory(place);
  if (!entries) return found;
  for (Entry& each : *entries) {
    if (each.facts.st_uid != uid)
      found.others.push_back(std::move(each.name));
    else if (S_ISREG(each.facts.st_mode))
      found.own.push_back(std::move(each));
  }
  return found;
}

std::string first_of(const std::vector<std::string>& names) {
  const std::string first =
      std::string("'") + plan::kSharedMemory + "/" + printable(names[0]) + "'";
  return names.size() == 1 ? first : first + " and " + std::to_string(names.size() - 1) + " more";
}

/// `of_one`, `of_many`: what else is known of them.
Degraded appeared(const std::vector<std::string>& names, std::string_view of_one,
                  std::string_view of_many, std::string instead) {
  const bool is_one = names.size() == 1;
  return {.promise = Promise::own_ipc,
          .why = fmt::format("{} {} made while the program ran, and {}", first_of(names),
                             is_one ? "was" : "were", is_one ? of_one : of_many),
          .instead = std::move(instead)};
}

}  // namespace

Result<SharedMemory> SharedMemory::take(uid_t uid) {
  SharedMemory memory;
  auto place = sys::open_at(AT_FDCWD, plan::kSharedMemory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!place) return not_lent(place.error().message, place.error().errno_value);
  if (!is_everybodys(place->get()) || !counts_its_use(place->get()))
    return not_lent("'/dev/shm' is not a tmpfs of mode 1777 with a size and a limit of inodes");
  if (::flock(place->get(), LOCK_EX | LOCK_NB) != 0)
    return not_lent(errno == EWOULDBLOCK ? "another run of sbx has '/dev/shm', or a process holds "
                                           "its lock"
                                         : "the lock of '/dev/shm' can't be taken");
  memory.place_ = std::move(*place);
  memory.is_cleared_ = true;  // what is there now is nobody's of this run
  auto names = read_names(memory.lock());
  if (names && !names->empty() && uid != ::geteuid()) {
    sweep_private_directories([&](uid_t died) { return memory.clear_after(died); });
    names = read_names(memory.lock());
  }
  if (!names) return not_lent(names.error().message, names.error().errno_value);
  if (!names->empty()) return not_lent("'/dev/shm' is not empty: " + first_of(*names));
  memory.uid_ = uid;
  memory.is_cleared_ = false;
  return memory;
}

SharedMemory::~SharedMemory() {
  (void)clear();
}

bool SharedMemory::clear_after(uid_t died) const {
  const auto again =
      sys::open_at(AT_FDCWD, plan::kSharedMemory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!again) return true;
  if (!place_.valid() && ::flock(again->get(), LOCK_EX | LOCK_NB) != 0) return false;
  for (const Entry& each : files_in(again->get(), died).own)
    (void)held::remove_file(again->get(), each.name);
  return true;
}

std::vector<Degraded> SharedMemory::clear() {
  if (!place_.valid() || std::exchange(is_cleared_, true)) return {};
  const auto [files, others] = files_in(place_.get(), uid_);
  const bool may_be_callers = uid_ == ::geteuid();
  UsedFiles used;
  if (may_be_callers && !files.empty()) {
    for (const Entry& each : files) used.ask(held::identity_of(each.facts));
    used.look();
  }
  std::vector<std::string> left;
  std::vector<std::string> removed;
  for (const Entry& each : files) {
    if (may_be_callers && used.has(held::identity_of(each.facts)))
      left.push_back(each.name);
    else if (held::remove_file(place_.get(), each.name))
      removed.push_back(each.name);
  }
  std::vector<Degraded> told;
  if (!others.empty())  // one may be a second name, link(2), that the program has made
    told.push_back(
        appeared(others, "another user owns it", "another user owns them", "not removed"));
  if (!left.empty())
    told.push_back(appeared(left, "a process that is none of its own uses it",
                            "a process that is none of its own uses them", "not removed"));
  if (may_be_callers && !removed.empty())  // one may have been another program's
    told.push_back(appeared(removed, "no process uses it", "no process uses them", "removed"));
  return told;
}

}  // namespace sbx::workspace
