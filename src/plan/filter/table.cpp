#include "plan/filter/table.hpp"

#include <algorithm>
#include <cerrno>

#include "plan/filter/symbols.hpp"

namespace sbx::plan {
namespace {

// Vocabulary for the fourth column of the .def file, so that it reads as words.
// NOLINTBEGIN(readability-identifier-naming)
constexpr Decision own{Standing::own};
constexpr Decision minimal{Standing::minimal};
constexpr Decision standard{Standing::standard};
constexpr Decision denied{Standing::denied};
constexpr Decision absent{Standing::absent, ArgumentGuard::none, ENOSYS};
constexpr Decision quiet(std::uint16_t error) {
  return {Standing::quiet, ArgumentGuard::none, error};
}
constexpr Decision minimal_if(ArgumentGuard guard) {
  return {Standing::minimal, guard};
}
constexpr Decision standard_if(ArgumentGuard guard) {
  return {Standing::standard, guard};
}
constexpr Decision denied_if(ArgumentGuard guard) {
  return {Standing::denied, guard};
}

// NOLINTEND(readability-identifier-naming)

constexpr std::uint16_t kNoNumber = 0xffff;  // -1 in the .def file

#define CALL(x86_64, aarch64, name, arguments, decision, group, reason) \
  Call{static_cast<std::uint16_t>(SBX_CALL_NUMBER(x86_64, aarch64)),    \
       #name,                                                           \
       arguments,                                                       \
       decision,                                                        \
       Group::group,                                                    \
       reason},
#define INSTEAD(name, successor)
constexpr auto kRows = std::to_array<Call>({
#include "plan/filter/syscalls.def"
});
#undef CALL
#undef INSTEAD

/// `Count` rows of this architecture by rising number, or those that it lacks.
template <std::size_t Count>
constexpr std::array<Call, Count> rows_here(bool here) {
  std::array<Call, Count> rows{};
  std::ranges::copy_if(kRows, rows.begin(),
                       [here](const Call& call) { return (call.number != kNoNumber) == here; });
  std::ranges::sort(rows, {}, &Call::number);
  return rows;
}
constexpr std::size_t kAbsentCount = std::ranges::count(kRows, kNoNumber, &Call::number);
constexpr auto kCalls = rows_here<kRows.size() - kAbsentCount>(true);
constexpr auto kAbsent = rows_here<kAbsentCount>(false);

/// Text in place, as in Call.
struct Instead {
  char name[16];
  char successor[20];
};
#define CALL(x86_64, aarch64, name, arguments, decision, group, reason)
#define INSTEAD(name, successor) Instead{#name, successor},
constexpr auto kInstead = std::to_array<Instead>({
#include "plan/filter/syscalls.def"
});
#undef CALL
#undef INSTEAD

constexpr int kLimit = kCalls.back().number + 1;

constexpr auto kRowOfNumber = [] {
  std::array<std::int16_t, kLimit> rows{};
  rows.fill(-1);
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    rows[kCalls[i].number] = static_cast<std::int16_t>(i);
  }
  return rows;
}();

constexpr auto kRowsByName = [] {
  std::array<std::uint16_t, kCalls.size()> rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(i);
  std::ranges::sort(rows, {}, [](std::uint16_t row) { return std::string_view(kCalls[row].name); });
  return rows;
}();

constexpr auto kGroups = std::to_array<GroupText>({
    {"@always",
     "what sbx and the kernel themselves need: exec, exit, the error report, signal return; never "
     "denied",
     "", false},
    {"@basic-io", "read, write and copy through descriptors that are already open", "", false},
    {"@io-event", "wait for descriptors: poll, select, epoll, eventfd, inotify", "", false},
    {"@file-read", "open files, look at names and attributes; opening for writing is also here", "",
     false},
    {"@file-write", "make, rename and remove names, change sizes, modes, times and attributes", "",
     false},
    {"@file-lock", "lock open files", "", false},
    {"@sync", "write files through to the disk", "", false},
    {"@memory", "map, protect and lock memory of the process", "", false},
    {"@thread", "locks and book-keeping of thread libraries; making a thread is clone", "", false},
    {"@signal", "handle and send signals within the sandbox", "", false},
    {"@timer", "read clocks, sleep, own timers", "", false},
    {"@scheduling", "priorities and CPUs of the sandbox's processes", "", false},
    {"@resources", "limits and usage of the process", "", false},
    {"@process", "process numbers, sessions, waiting, prctl", "", false},
    {"@process-spawn",
     "make child processes: fork, vfork, clone without CLONE_THREAD, clone3; threads stay",
     "the program can start further processes", false},
    {"@identity", "user, group and capability numbers of the process", "", false},
    {"@ipc",
     "System V and POSIX queues, semaphores and shared memory of the sandbox's own IPC namespace",
     "", false},
    {"@network", "sockets; where they lead is the network section's", "the program can use sockets",
     false},
    {"@system-info", "facts about the machine, random bytes", "", false},
    {"@self-restriction", "narrow oneself further: seccomp, Landlock", "", false},
    {"@debug",
     "look into and control other processes of the sandbox: ptrace, process_vm_*, kcmp, "
     "pidfd_getfd",
     "the program can read and change the other processes of its sandbox", false},
    {"@profile", "hardware and kernel counters",
     "counters are a side channel to the host, and their kernel code has had many holes", false},
    {"@aio", "old asynchronous I/O (io_submit)",
     "takes from a budget that all programs of the host share", false},
    {"@io-uring", "asynchronous I/O by rings", "calls made through a ring pass no filter", false},
    {"@numa", "place memory on nodes", "the program can push its memory onto one node of the host",
     false},
    {"@mount", "the mount table and file-system code",
     "opens kernel code that most sandbox escapes went through", true},
    {"@namespace", "make and join namespaces",
     "opens kernel code that most sandbox escapes went through", true},
    {"@keyring", "kernel keyrings",
     "keyrings are shared with the other processes of the host's user", false},
    {"@handle", "open files by handle", "handles reach files behind the mounts", true},
    {"@fanotify", "watch whole file systems", "the program can see the host's use of files", false},
    {"@bpf", "load programs into the kernel", "opens kernel code with many known holes", true},
    {"@memory-tricks", "userfaultfd, memfd_secret, vmsplice",
     "these make holes of the kernel easy to use", false},
    {"@module", "load and remove kernel modules", "code for the host's kernel", true},
    {"@reboot", "reboot, kexec", "ends the machine", true},
    {"@swap", "swap areas of the host", "the host's memory", true},
    {"@clock", "set clocks", "the host's clock", true},
    {"@raw-io", "ports, kernel log, consoles", "the host's devices and log", true},
    {"@privileged", "accounting, quotas, host name and the like", "settings of the host", true},
    {"@obsolete", "what nobody uses any more", "old kernel code that nobody looks after", false},
});
static_assert(kGroups.size() == static_cast<std::size_t>(Group::obsolete) + 1);

// Called for every block, page, lock or clock reading of a program. The kernel's bitmap:
// seccomp_cache_check_allow in kernel/seccomp.c.
struct HotName {
  char name[16];
};
constexpr auto kHot = std::to_array<HotName>({
    {"brk"},         {"clock_gettime"}, {"close"},          {"epoll_pwait"},
    {"epoll_wait"},  {"fstat"},         {"futex"},          {"getdents64"},
    {"getpid"},      {"getrandom"},     {"gettid"},         {"gettimeofday"},
    {"lseek"},       {"lstat"},         {"madvise"},        {"mmap"},
    {"munmap"},      {"newfstatat"},    {"open"},           {"openat"},
    {"poll"},        {"ppoll"},         {"pread64"},        {"pselect6"},
    {"pwrite64"},    {"read"},          {"readv"},          {"recvfrom"},
    {"recvmsg"},     {"rt_sigaction"},  {"rt_sigprocmask"}, {"rt_sigreturn"},
    {"sched_yield"}, {"sendmsg"},       {"sendto"},         {"stat"},
    {"statx"},       {"write"},         {"writev"},
});
constexpr auto kHotText = [](const HotName& hot) { return std::string_view(hot.name); };
static_assert(std::ranges::is_sorted(kHot, {}, kHotText));

}  // namespace

std::span<const Call> calls() {
  return kCalls;
}
int call_limit() {
  return kLimit;
}

const Call* find_call(int number) {
  if (number < 0 || number >= kLimit) return nullptr;
  const std::int16_t row = kRowOfNumber[static_cast<std::size_t>(number)];
  return row < 0 ? nullptr : &kCalls[static_cast<std::size_t>(row)];
}

const Call* find_call(std::string_view name) {
  const auto name_of = [](std::uint16_t row) { return std::string_view(kCalls[row].name); };
  const auto found = std::ranges::lower_bound(kRowsByName, name, {}, name_of);
  return found != kRowsByName.end() && name_of(*found) == name ? &kCalls[*found] : nullptr;
}

const Call* find_absent_call(std::string_view name) {
  const auto* const found = std::ranges::find(
      kAbsent, name, [](const Call& call) { return std::string_view(call.name); });
  return found == kAbsent.end() ? nullptr : found;
}

std::string_view used_instead(std::string_view name) {
  const auto* const found = std::ranges::find(
      kInstead, name, [](const Instead& line) { return std::string_view(line.name); });
  return found == kInstead.end() ? std::string_view() : std::string_view(found->successor);
}

const GroupText& text_of(Group group) {
  return kGroups[static_cast<std::size_t>(group)];
}
std::size_t group_count() {
  return kGroups.size();
}

std::optional<Group> find_group(std::string_view name) {
  for (std::size_t i = 0; i < kGroups.size(); ++i) {
    if (name == kGroups[i].name) return static_cast<Group>(i);
  }
  return std::nullopt;
}

bool is_hot(const Call& call) {
  return std::ranges::binary_search(kHot, std::string_view(call.name), {}, kHotText);
}

int argument_bits(const Call& call, int argument) {
  const std::string_view arguments(call.arguments);
  if (argument < 0 || static_cast<std::size_t>(argument) >= arguments.size()) return 0;
  switch (arguments[static_cast<std::size_t>(argument)]) {
    case 'h':
      return 16;
    case 'i':
      return 32;
    default:
      return 64;
  }
}

std::string_view nearest_name(std::string_view name) {
  std::string_view best;
  std::size_t best_distance = name.size() / 3 + 2;  // further away is another word, not a typo
  const auto consider = [&](std::string_view candidate) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  };
  if (name.starts_with('@')) {
    for (const GroupText& group : kGroups) consider(group.name);
  } else {
    for (const Call& call : kCalls) consider(call.name);
    for (const Call& call : kAbsent) consider(call.name);
  }
  return best;
}

}  // namespace sbx::plan
