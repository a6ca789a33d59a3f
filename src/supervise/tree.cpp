#include "supervise/tree.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/message.hpp"
#include "base/process.hpp"
#include "base/sys.hpp"
#include "base/unique_fd.hpp"
#include "supervise/meters/process_list.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

std::uint64_t microseconds_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

}  // namespace

Status Tree::watch(EventLoop& loop, std::function<void()> ended) {
  loop_ = &loop;
  watched_ = handles_.pid1;
  // The pidfd is readable when the PID namespace is empty, because init ends last.
  return loop.watch(handles_.pid1, EPOLLIN, [this, ended = std::move(ended)](std::uint32_t) {
    leave();
    ended();
  });
}

void Tree::leave() {
  if (EventLoop* const loop = std::exchange(loop_, nullptr)) loop->forget(watched_);
}

std::optional<control::Used> Tree::reap() {
  leave();
  siginfo_t info{};
  rusage times{};
  // glibc's waitid doesn't return the rusage that the system call provides.
  long answer = 0;
  do answer = ::syscall(SYS_waitid, P_PIDFD, handles_.pid1, &info, WEXITED, &times);
  while (answer != 0 && errno == EINTR);
  return control::Used{.user_microseconds = microseconds_of(times.ru_utime),
                       .system_microseconds = microseconds_of(times.ru_stime),
                       .blocks_written = static_cast<std::uint64_t>(times.ru_oublock),
                       .largest_kib = times.ru_maxrss};
}

void Tree::kill() {
  process::kill(handles_.pid1);
  if (handles_.group != nullptr) (void)handles_.group->kill();  // the same, in one operation
}

bool Tree::order(control::FromSupervisor what, int value) const {
  const control::Order message{.what = what, .value = value};
  return ::send(handles_.control, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         sizeof message;
}

bool Tree::freeze() {
  frozen_ = handles_.group != nullptr && handles_.group->freeze(true);
  return frozen_;
}

bool Tree::stop() {
  if (!freeze()) (void)order(control::FromSupervisor::stop_all);
  return frozen_;
}

void Tree::wake() {
  const bool thawed = handles_.group != nullptr && handles_.group->freeze(false);
  const bool was_frozen = std::exchange(frozen_, false);
  if (!was_frozen || !thawed) (void)order(control::FromSupervisor::continue_all);
}

// ---- by uid ----

namespace {

constexpr std::size_t kRoomForName = 64;

/// True if a process has this real uid. The kernel looks it up, without a walk over /proc.
bool is_running(uid_t uid) {
  errno = 0;
  return ::getpriority(PRIO_USER, uid) != -1 || errno != ESRCH;
}

/// Ends every process of the program, and its keeper, as a process with the keeper's ids: root's
/// kill(-1) would end the whole container. The processes can't signal this one. False where no
/// process can be made.
bool kill_all_of(const Tree::Handles& handles) {
  const pid_t killer = ::fork();
  if (killer == 0) {
    uid_t real = 0;
    uid_t effective = 0;
    uid_t saved = 0;
    const bool is_changed =
        handles.uid != 0 && handles.keeper != 0 && ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
        ::syscall(SYS_setresgid, handles.gid, handles.gid, handles.gid) == 0 &&
        ::syscall(SYS_setresuid, handles.keeper, handles.uid, handles.keeper) == 0 &&
        ::getresuid(&real, &effective, &saved) == 0 && real == handles.keeper &&
        effective == handles.uid && saved == handles.keeper;
    if (is_changed) (void)::kill(-1, SIGKILL);  // ESRCH: nobody is left
    ::_exit(is_changed ? 0 : 1);
  }
  return killer > 0 && process::wait_for(killer) == 0;
}

}  // namespace

Status KeptTree::make_reaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0) return {};
  return fail_errno(ErrorKind::host, "no-landlock-tier",
                    "cannot become the reaper of the sandbox's processes");
}

std::vector<pid_t> KeptTree::own_children() {
  ProcessList list = ProcessList::below(::getpid(), -1);
  ProcessList::Process own{.number = ::getpid(), .directory = list.directory_of_pid1()};
  return list.children_of(own);  // of each thread
}

void KeptTree::wait_for_rest(const std::vector<pid_t>& others) {
  for (const pid_t child : own_children()) {
    const auto name = sys::read_file("/proc/" + std::to_string(child) + "/comm", kRoomForName);
    if (std::ranges::find(others, child) == others.end() && name &&
        *name == std::string(control::kInitName) + "\n")
      process::wait_for(child);
  }
}

Status KeptTree::watch(EventLoop& loop, std::function<void()> ended) {
  loop_ = &loop;
  watched_ = handles().pid1;
  return loop.watch(watched_, EPOLLIN, [this, &loop, ended = std::move(ended)](std::uint32_t) {
    leave();
    used_ = Tree::reap();
    finish(loop, ended);
  });
}

/// The keeper ends last but for its second, unless somebody else has killed it. What is left is
/// looked for again when a child ends, and after a while: not all that is left are children.
void KeptTree::finish(EventLoop& loop, const std::function<void()>& ended) {
  constexpr auto kAgain = std::chrono::milliseconds(1);
  loop.cancel(std::exchange(again_, EventLoop::kNoTimer));
  all_gone_ = collect();
  if (all_gone_) {
    leave();
    return ended();
  }
  again_ = loop.after(kAgain, [this, &loop, ended] { finish(loop, ended); });
  if (awaited() == last_child_) return;  // watched, or it has ended and can't be reaped yet
  leave();
  last_child_ = awaited();
  last_ = process::open(last_child_);
  const auto look = [this, &loop, ended](std::uint32_t) {
    leave();
    finish(loop, ended);
  };
  if (!last_.valid() || !loop.watch(last_.get(), EPOLLIN, look)) return;  // the timer stays
  loop_ = &loop;
  watched_ = last_.get();
}

/// The second is of the keeper's process group. No program is: each begins a session of its own.
pid_t UidTree::find_second() const {
  for (const pid_t child : own_children())
    if (::getpgid(child) == handles().pid) return child;
  return 0;
}

/// The keeper is reaped. Its second, which has its ids, is mostly about to end then: waiting for
/// that takes less than the process that ends all of them.
bool UidTree::collect() {
  const auto reap_ended = [] {
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
  };
  const auto is_left = [this] { return is_running(handles().uid) || is_running(handles().keeper); };
  reap_ended();
  if (!is_left()) return true;
  if (!second_) {
    second_ = find_second();
    if (*second_ > 0) return false;
  }
  (void)kill_all_of(handles());
  reap_ended();
  return !is_left();
}

std::optional<control::Used> KeptTree::reap() {
  if (!used_) used_ = Tree::reap();
  // One in the middle of a system call that can't be interrupted ends when that is over.
  constexpr std::uint64_t kLongest = 5'000'000;  // microseconds
  const std::uint64_t until = sys::now_microseconds() + kLongest;
  while (!all_gone_ && !(all_gone_ = collect()) && sys::now_microseconds() < until)
    sys::sleep_1ms();
  return used_;
}

/// Where no process can be made, the end of the control socket makes the keeper do it.
void UidTree::kill() {
  if (!kill_all_of(handles())) (void)::shutdown(handles().control, SHUT_WR);
  if (handles().group != nullptr) (void)handles().group->kill();
}

// ---- by domain ----

/// At the end of its control socket the keeper ends the others, then itself.
void DomainTree::kill() {
  (void)::shutdown(handles().control, SHUT_WR);
  (void)process::send_signal(handles().pid1, SIGCONT);  // somebody outside may have stopped it
  if (handles().group != nullptr) (void)handles().group->kill();
}

std::vector<pid_t> DomainTree::left() const {
  while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
  }
  std::vector<pid_t> children = own_children();
  std::erase_if(children,
                [&](pid_t child) { return std::ranges::find(others_, child) != others_.end(); });
  return children;
}

/// Where the second was killed too, this process does it. What lost its parent is its child, and no
/// other process can have a child's number before it is reaped here. No task begins meanwhile:
/// nobody but this thread answers clone(2).
bool DomainTree::collect() {
  constexpr unsigned kPatience = 500;  // looks, mostly of a millisecond: the second needs few
  constexpr int kDeepest = 500;
  std::vector<pid_t> children = left();
  if (children.empty()) return true;
  awaited_ = children.front();
  if (++looks_ <= kPatience) return false;
  for (int i = 0; i < kDeepest && !children.empty(); ++i) {
    for (const pid_t child : children) ::kill(child, SIGKILL);
    sys::sleep_1ms();
    children = left();
  }
  return children.empty();
}

LookingAs::LookingAs(const Tree::Handles& handles) : changes_(handles.keeper != 0) {
  if (!changes_) return;
  gid_ = static_cast<gid_t>(::setfsgid(handles.gid));
  uid_ = static_cast<uid_t>(::setfsuid(handles.uid));
}

LookingAs::~LookingAs() {
  if (!changes_) return;
  ::setfsuid(uid_);
  ::setfsgid(gid_);
}

Status CallTree::watch(EventLoop&, std::function<void()>) {
  return {};
}

void HeldTree::kill() {
  process::kill(handles().pid1);
}

pid_t HeldTree::holder() const {
  return handles().processes >= 0 ? 1 : handles().pid;
}

namespace {

constexpr std::uint64_t kStopsWithin = 5'000'000;  // microseconds

/// A hook for tests: calls do not stop, which no program can bring about, or stay stopped until the
/// test opens a FIFO.
bool is_told_not_to_stop() {
#ifdef SBX_FAULTS
  if (const char* const gate = std::getenv("SBX_TEST_CALLS_STAY_STOPPED"))
    (void)UniqueFd(::open(gate, O_WRONLY | O_CLOEXEC));
  return std::getenv("SBX_TEST_CALLS_DO_NOT_STOP") != nullptr;
#else
  return false;
#endif
}

/// The calls go on writing, so files can be half-written: nothing is read.
std::unexpected<Error> not_stopped() {
  return fail(
      Error{.kind = ErrorKind::host,
            .code = "calls-not-stopped",
            .message = "the session's calls did not stop within 5 s, for its files to be read",
            .errno_value = 0,
            .hint = "try again, or end the call that the kernel holds up: sbx session calls"});
}

Error session_gone() {
  return {.kind = ErrorKind::host, .code = "session-gone", .message = "the session has ended"};
}

/// Field 3 of proc_pid_stat(5): 'T' for stopped, 'R' for running; 0 if it has ended.
char state_of(const ProcessList& processes, const ProcessList::Process& process) {
  std::array<char, 512> room;
  const std::string_view text = read_small(processes.proc(), process.directory + "/stat", room);
  const std::size_t end = text.rfind(')');
  return end == std::string_view::npos || end + 2 >= text.size() ? '\0' : text[end + 2];
}

/// A process in vfork(2) stays in 'D' while its child is stopped: it counts as stopped.
bool is_stopped(char state) {
  return state == 'T' || state == 't' || state == 'D' || state == 'Z' || state == 'X' ||
         state == '\0';
}

/// Returns when the holder has sent the signals.
Status ask_to_stop(int holder) {
  const control::Order order{.what = control::FromSupervisor::stop_all, .value = 0};
  if (::send(holder, &order, sizeof order, MSG_NOSIGNAL) != sizeof order)
    return fail(sys::send_failure(session_gone()));
  control::Report report{};
  ssize_t got = 0;
  do got = ::recv(holder, &report, sizeof report, 0);
  while (got < 0 && errno == EINTR);
  if (got != sizeof report) return fail(session_gone());
  return {};
}

}  // namespace

Status HeldTree::stop_and_wait() {
  were_stopped_.clear();
  const std::uint64_t until = sys::now_microseconds() + kStopsWithin;
  if (!freeze()) return stop_by_signals(until);
  while (!has_stopped() && sys::now_microseconds() < until) sys::sleep_1ms();
  if (!has_stopped() || is_told_not_to_stop()) return not_stopped();
  return {};
}

Status HeldTree::stop_by_signals(std::uint64_t until) {
  ProcessList processes(handles().pid, handles().processes);
  processes.refresh();
  // Numbers are the host's only here. Each process is held: until they wake, one that ends may
  // leave its number to a process outside.
  for (const auto& each : processes.all()) {
    if (!processes.is_of_host() || state_of(processes, each) != 'T') continue;
    UniqueFd held = process::open(each.number);
    if (held.valid()) were_stopped_.push_back(std::move(held));
  }
  SBX_TRY(ask_to_stop(handles().control));
  bool all = false;
  while (!all && sys::now_microseconds() < until) {
    processes.refresh();
    all = std::ranges::all_of(processes.all(), [&](const auto& process) {
      return is_stopped(state_of(processes, process));
    });
    if (!all) sys::sleep_1ms();
  }
  if (!all || is_told_not_to_stop()) return not_stopped();
  return {};
}

void HeldTree::wake_all() {
  wake();  // it fails only where all have ended
  for (const UniqueFd& each : were_stopped_) (void)process::send_signal(each.get(), SIGSTOP);
  were_stopped_.clear();
}

}  // namespace sbx::supervise
