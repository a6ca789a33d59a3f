#include "spawn/identity.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/held.hpp"
#include "base/process.hpp"
#include "base/sys.hpp"
#include "host/state.hpp"

namespace sbx::spawn {
namespace {

constexpr uid_t kRange = 65'536;
constexpr uid_t kInside = 1000;
constexpr std::size_t kMuch = 1 << 20;  ///< bytes of passwd or subuid that are read

struct IdRange {
  std::uint64_t first;
  std::uint64_t count;
  [[nodiscard]] bool overlaps(std::uint64_t base) const {
    return first < base + kRange && base < first + count;
  }
};

/// Field `index` of a colon-separated line as a number.
std::uint64_t numeric_field(std::string_view line, int index) {
  for (; index > 0; --index) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return 0;
    line.remove_prefix(colon + 1);
  }
  std::uint64_t value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  return value;
}

void append_lines(std::vector<IdRange>& ranges, const char* path, int first_field,
                  int count_field) {
  const auto text = sys::read_file(path, kMuch);
  if (!text) return;  // a missing file claims no ids
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (!line.empty() && line[0] != '#')
      ranges.push_back({numeric_field(line, first_field),
                        count_field < 0 ? 1 : numeric_field(line, count_field)});
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
}

/// True if a process runs as `uid`. The kernel looks it up by user, without a walk over /proc.
bool is_running(uid_t uid) {
  errno = 0;
  return ::getpriority(PRIO_USER, uid) != -1 || errno != ESRCH;
}

/// A directory of root's that nobody else can enter. Errors: host.
Result<UniqueFd> own_directory(const std::string& path) {
  auto directory =
      SBX_TRY(held::open_or_make_path(path, 0700));  // what is there already is looked at
  struct stat facts{};
  const bool is_own = ::fstat(directory.get(), &facts) == 0 && facts.st_uid == ::geteuid() &&
                      (facts.st_mode & 0077) == 0;
  if (is_own) return directory;
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-uid-locks",
                    .message = "'" + path + "' is open to other users"});
}

Result<UniqueFd> open_locks_in(const std::string& path) {
  const UniqueFd directory = SBX_TRY(own_directory(path));
  UniqueFd locks(
      ::openat(directory.get(), "uids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (locks.valid()) return locks;
  return fail_errno(ErrorKind::host, "no-uid-locks", "cannot write to '" + path + "/uids'");
}

/// The file whose locks reserve bases: one byte for each. It stays, because who removed it might
/// take it from another run that has just opened it. Not an abstract socket: any user can bind
/// those. Errors: host (no place for it).
Result<UniqueFd> open_locks(const std::string& state) {
  std::string reasons;
  for (const std::string& place : {std::string("/run/sbx"), state}) {
    if (place.empty()) continue;
    auto locks = open_locks_in(place);
    if (locks || locks.error().errno_value == EMFILE) return locks;  // the place is not the cause
    reasons += (reasons.empty() ? "" : "; ") + locks.error().text();
  }
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-uid-locks",
                    .message = "cannot reserve user ids: " + reasons});
}

/// True if no other run holds the place. The lock belongs to the open file, so it lasts as long as
/// the descriptor or a copy of it: fcntl(2), "Open file description locks".
bool lock_byte(int locks, off_t place) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  return ::fcntl(locks, F_OFD_SETLK, &lock) == 0;
}

Result<MappedIdentity> claim_base(const std::string& state) {
  UniqueFd locks = SBX_TRY(open_locks(state));
  std::vector<IdRange> taken;
  append_lines(taken, "/etc/subuid", 1, 2);
  append_lines(taken, "/etc/subgid", 1, 2);
  append_lines(taken, "/etc/passwd", 2, -1);
  for (int attempt = 0; attempt < 64; ++attempt) {
    std::uint16_t random = 0;
    (void)!::getrandom(&random, sizeof random,
                       0);  // blocks only before the pool is ready
    // Blocks 16 to 32,000 of 65,536 ids: above the ids of system and people, below 2^31, which some
    // programs treat as signed.
    const uid_t base = (16 + static_cast<uid_t>(random) % 32'000) * kRange;
    if (std::ranges::any_of(taken, [&](const IdRange& range) { return range.overlaps(base); }))
      continue;
    if (is_running(base + kInside)) continue;
    if (!lock_byte(locks.get(), static_cast<off_t>(base / kRange))) continue;
    return MappedIdentity{.changes_ids = true,
                          .base = base,
                          .uid_on_host = base + kInside,
                          .gid_on_host = base + kInside,
                          .lock = std::move(locks)};
  }
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-free-uid",
                    .message = "no block of 65,536 unused user ids was found",
                    .hint = "run sbx as an ordinary user, or free ranges in /etc/subuid"});
}

/// The ids that this user namespace has, user_namespaces(7).
std::vector<IdRange> mapped_ids(const char* path) {
  std::vector<IdRange> ranges;
  const auto text = sys::read_file(path, kMuch);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::array<std::uint64_t, 3> fields{};
    std::string_view line = rest.substr(0, end);
    for (std::uint64_t& field : fields) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      const auto [next, error] = std::from_chars(line.data(), line.data() + line.size(), field);
      if (error != std::errc()) break;
      line.remove_prefix(static_cast<std::size_t>(next - line.data()));
    }
    if (fields[2] > 0) ranges.push_back({fields[0], fields[2]});
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return ranges;
}

bool are_mapped(const std::vector<IdRange>& ranges, std::uint64_t first, std::uint64_t count) {
  return std::ranges::any_of(ranges, [&](const IdRange& range) {
    return first >= range.first && first + count <= range.first + range.count;
  });
}

std::uint32_t random_number() {
  std::uint32_t random = 0;
  (void)!::getrandom(&random, sizeof random, 0);  // blocks only before the pool is ready
  return random;
}

/// Two ids for a program and its keeper, without a user namespace: as other runs of root have them,
/// from a block of 65,536; where this namespace has no such blocks, from what it has.
Result<MappedIdentity> claim_own_uids(const std::string& state) {
  constexpr std::uint64_t kFirst = 2000;      // above the ids of people
  constexpr off_t kSingle = off_t{1} << 32U;  // locks of single ids
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 31U;
  const std::vector<IdRange> uids = mapped_ids("/proc/self/uid_map");
  const std::vector<IdRange> gids = mapped_ids("/proc/self/gid_map");
  if (are_mapped(uids, 16 * std::uint64_t{kRange}, std::uint64_t{32'000} * kRange) &&
      are_mapped(gids, 16 * std::uint64_t{kRange}, std::uint64_t{32'000} * kRange)) {
    MappedIdentity identity = SBX_TRY(claim_base(state));
    identity.keeper = identity.uid_on_host + 1;
    if (!is_running(identity.keeper)) return identity;
  }
  UniqueFd locks = SBX_TRY(open_locks(state));
  std::vector<IdRange> taken;
  append_lines(taken, "/etc/subuid", 1, 2);
  append_lines(taken, "/etc/subgid", 1, 2);
  append_lines(taken, "/etc/passwd", 2, -1);
  append_lines(taken, "/etc/group", 2, -1);
  for (int attempt = 0; attempt < 64 && !uids.empty(); ++attempt) {
    const IdRange& range = uids[random_number() % uids.size()];
    const std::uint64_t program = range.first + 2 * (random_number() % (range.count / 2 + 1));
    const bool is_taken = std::ranges::any_of(taken, [&](const IdRange& each) {
      return each.first < program + 2 && program < each.first + each.count;
    });
    if (program < kFirst || program >= kHighest || is_taken || !are_mapped(uids, program, 2) ||
        !are_mapped(gids, program, 1))
      continue;
    const auto uid = static_cast<uid_t>(program);
    if (is_running(uid) || is_running(uid + 1)) continue;
    if (!lock_byte(locks.get(), kSingle + static_cast<off_t>(program))) continue;
    return MappedIdentity{.changes_ids = true,
                          .base = 0,
                          .uid_on_host = uid,
                          .gid_on_host = uid,
                          .lock = std::move(locks),
                          .keeper = uid + 1};
  }
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-free-uid",
                    .message = "no two unused user ids were found for the program and its keeper",
                    .hint = "give the container more ids: see /proc/self/uid_map"});
}

std::string map_line(std::uint64_t inside, std::uint64_t outside, std::uint64_t count) {
  return std::to_string(inside) + " " + std::to_string(outside) + " " + std::to_string(count) +
         "\n";
}

/// The wide map with `owner` and 1000 swapped: every other id keeps its number inside.
std::string swapped_map(std::uint64_t owner, std::uint64_t base) {
  if (owner == kInside) return map_line(0, base, kRange);
  std::string map = map_line(owner, base + kInside, 1);
  const std::uint64_t other = owner < kRange ? owner : kRange;  // above the range no other id moves
  const std::uint64_t low = std::min<std::uint64_t>(other, kInside);
  const std::uint64_t high = std::max<std::uint64_t>(other, kInside);
  if (low > 0) map += map_line(0, base, low);
  if (high > low + 1) map += map_line(low + 1, base + low + 1, high - low - 1);
  if (high + 1 < kRange) map += map_line(high + 1, base + high + 1, kRange - high - 1);
  if (other < kRange) map += map_line(kInside, base + owner, 1);
  return map;
}

Status write_maps(pid_t pid, const std::string& uids, const std::string& gids) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/";
  SBX_TRY(sys::write_file(directory + "uid_map", uids));
  return sys::write_file(directory + "gid_map", gids);
}

/// Dies with its parent. Gets the parent's pid as argument, because the parent may die before the
/// signal is set.
[[noreturn]] int park(void* maker) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != *static_cast<const pid_t*>(maker)) ::_exit(0);
  for (;;) ::pause();
}

/// A process that only holds a user namespace; it shares this process's memory and is killed
/// immediately afterwards.
Result<UniqueFd> make_map_namespace(const std::string& uids, const std::string& gids) {
  alignas(16) std::array<char, 16'384> stack;  // used only by that process, which just pauses
  pid_t maker = ::getpid();
  const pid_t pid =
      ::clone(park, stack.data() + stack.size(), CLONE_NEWUSER | CLONE_VM | SIGCHLD, &maker);
  if (pid < 0)
    return fail_errno(ErrorKind::setup, "no-user-namespace",
                      "cannot make a user namespace for idmapped mounts");
  Result<UniqueFd> space = [&]() -> Result<UniqueFd> {
    SBX_TRY(write_maps(pid, uids, gids));
    return sys::open_at(AT_FDCWD, "/proc/" + std::to_string(pid) + "/ns/user", O_RDONLY);
  }();
  ::kill(pid, SIGKILL);
  process::wait_for(pid);
  return space;
}

}  // namespace

Result<MappedIdentity> acquire_identity(const plan::Identity& wanted, const host::Host& host) {
  if (wanted.own_uids) return claim_own_uids(host::state_directory(host));
  if (wanted.callers_own) return MappedIdentity{.uid_on_host = host.uid, .gid_on_host = host.gid};
  if (host.privileged) return claim_base(host::state_directory(host));
  return MappedIdentity{.uid_on_host = host.uid, .gid_on_host = host.gid};
}

Status write_id_maps(pid_t pid, const MappedIdentity& identity, const host::Host& host) {
  if (identity.changes_ids)
    return write_maps(pid, map_line(0, identity.base, kRange), map_line(0, identity.base, kRange));
  // user_namespaces(7): without CAP_SETGID in the parent namespace, gid_map is writable only after
  // setgroups is denied
  SBX_TRY(sys::write_file("/proc/" + std::to_string(pid) + "/setgroups", "deny"));
  return write_maps(pid, map_line(kInside, host.uid, 1), map_line(kInside, host.gid, 1));
}

Result<int> IdMaps::for_owner(uid_t uid, gid_t gid) {
  const auto key = std::pair(uid, gid);
  const auto found = namespaces_.find(key);
  if (found != namespaces_.end()) return found->second.get();
  UniqueFd space = SBX_TRY(make_map_namespace(swapped_map(uid, base_), swapped_map(gid, base_)));
  const int fd = space.get();
  namespaces_.emplace(key, std::move(space));
  return fd;
}

}  // namespace sbx::spawn
