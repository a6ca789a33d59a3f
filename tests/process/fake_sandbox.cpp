#include "fake_sandbox.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "base/control.hpp"
#include "base/sys.hpp"

namespace sbx::test {
namespace {

constexpr int kListenerSocket = 700;  // the main process's socket to the supervisor

void send_fd(int socket, int fd) {
  char byte = 'x';
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  *reinterpret_cast<int*>(CMSG_DATA(header)) = fd;
  if (::sendmsg(socket, &message, 0) != 1) ::_exit(99);
}

int receive_fd(int socket) {
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  return header == nullptr ? -1 : *reinterpret_cast<const int*>(CMSG_DATA(header));
}

void put_in_place(int fd, int wanted) {
  if (wanted == kClosed) {
    ::close(fd);
  } else if (wanted == kNull) {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::dup2(null.get(), fd);
  } else {
    ::dup2(wanted, fd);
  }
}

void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

struct Init {
  const FakeRun& run;
  int control;
  pid_t main = -1;

  void report(control::FromPid1 what, int value) const {
    const control::Report message{.what = what, .value = value};
    (void)!::send(control, &message, sizeof message, MSG_NOSIGNAL);
  }
  void obey() const {
    control::Order order{};
    const ssize_t got = ::recv(control, &order, sizeof order, MSG_DONTWAIT);
    if (got == 0) ::_exit(0);  // the supervisor has ended
    if (got != sizeof order) return;
    switch (order.what) {
      case control::FromSupervisor::signal_main:
        ::kill(main, order.value);
        break;
      case control::FromSupervisor::stop_all:
        ::kill(main, SIGSTOP);
        ::waitpid(main, nullptr, WUNTRACED);
        report(control::FromPid1::stopped, 0);
        break;
      case control::FromSupervisor::continue_all:
        ::kill(main, SIGCONT);
        break;
      default:
        break;
    }
  }
  [[noreturn]] void serve() {
    const int ended = static_cast<int>(::syscall(SYS_pidfd_open, main, 0));
    for (;;) {
      pollfd wait[2] = {{.fd = ended, .events = POLLIN}, {.fd = control, .events = POLLIN}};
      ::poll(wait, 2, -1);
      if (wait[1].revents != 0) obey();
      if (wait[0].revents == 0) continue;
      int status = 0;
      if (::waitpid(main, &status, WNOHANG) != main) continue;
      if (run.reports) report(control::FromPid1::main_ended, status);
      while (run.init_stays) ::pause();
      ::_exit(0);
    }
  }
};

[[noreturn]] void be_init(const FakeRun& run, int control, supervise::StreamPair& pair, int slave) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  reset_signals();
  ::setsid();
  const pid_t init = ::getpid();
  const pid_t main = ::fork();
  if (main == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != init) ::_exit(0);  // it was killed before that
    ::dup2(slave >= 0 ? slave : pair.child_in.get(), 0);
    ::dup2(slave >= 0 ? slave : pair.child_out.get(), 1);
    ::dup2(slave >= 0 ? slave : pair.child_err.get(), 2);
    pair = {};
    const int status = run.main();
    std::fflush(nullptr);
    ::_exit(status);
  }
  pair = {};
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  ::close(kListenerSocket);
  Init{run, control, main}.serve();
}

struct VerdictText {
  std::string operator()(const Exited& v) const { return "exited " + std::to_string(v.code); }
  std::string operator()(const Signaled& v) const { return "signaled " + std::to_string(v.signal); }
  std::string operator()(const OverBudget& v) const {
    return std::string("over-budget ") + name_of(v.budget);
  }
  std::string operator()(const Denied& v) const { return "denied " + v.call; }
  std::string operator()(const Cancelled& v) const {
    return "cancelled " + std::to_string(v.signal);
  }
  std::string operator()(const Lost&) const { return "lost"; }
};

/// Length, newline, bytes.
void put(std::string& to, const std::string& text) {
  to += std::to_string(text.size()) + "\n" + text;
}
void put(std::string& to, std::uint64_t number) {
  put(to, std::to_string(number));
}

struct Reader {
  std::string text;
  std::size_t at = 0;
  std::string next() {
    const std::size_t line = text.find('\n', at);
    if (line == std::string::npos) return {};
    const std::size_t size = std::strtoull(text.c_str() + at, nullptr, 10);
    at = line + 1 + size;
    return text.substr(line + 1, size);
  }
  std::uint64_t number() { return std::strtoull(next().c_str(), nullptr, 10); }
};

void put(std::string& to, const Stream& stream) {
  put(to, stream.text ? "+" + *stream.text : std::string());
  put(to, stream.bytes);
  put(to, std::uint64_t{stream.truncated});
  put(to, stream.head_bytes);
  put(to, stream.tail_bytes);
}

Stream get_stream(Reader& from) {
  Stream stream;
  const std::string text = from.next();
  if (!text.empty()) stream.text = text.substr(1);
  stream.bytes = from.number();
  stream.truncated = from.number() != 0;
  stream.head_bytes = from.number();
  stream.tail_bytes = from.number();
  return stream;
}

std::string describe_outcome(const Outcome& outcome) {
  std::string text, notes, denials, limits, degraded;
  for (const std::string& note : outcome.notes) notes += note + "\n";
  for (const Denial& denial : outcome.denials)
    denials += denial.what + "*" + std::to_string(denial.count) + "@" + denial.process + "\n";
  for (const LimitMet& met : outcome.limits_met)
    limits += met.limit + "=" + std::to_string(met.value) + "\n";
  for (const Degraded& item : outcome.degraded) degraded += item.what() + ": " + item.why + "\n";
  put(text, std::visit(VerdictText{}, outcome.verdict));
  put(text, outcome.detail);
  put(text, notes);
  put(text, denials);
  put(text, limits);
  put(text, degraded);
  put(text, outcome.cpu_time_means);
  put(text, outcome.out);
  put(text, outcome.err);
  put(text, outcome.write_error ? outcome.write_error->stream + " " +
                                      std::to_string(outcome.write_error->errno_value)
                                : std::string());
  put(text, outcome.usage.wall_ms);
  put(text, outcome.usage.user_ms);
  put(text, outcome.usage.system_ms);
  return text;
}

std::uint64_t peak_kib() {
  auto status = sys::read_file("/proc/self/status", 8192);
  const std::size_t at = status ? status->find("VmHWM:") : std::string::npos;
  return at == std::string::npos ? 0 : std::strtoull(status->c_str() + at + 6, nullptr, 10);
}

std::uint64_t own_cpu_ms() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
         static_cast<std::uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

supervise::OutputForm form_of(const FakeRun& run) {
  if (run.terminal) return supervise::OutputForm::terminal;
  return run.settings.capture ? supervise::OutputForm::captured : supervise::OutputForm::passed;
}

/// A PID 1 that runs, and what its supervisor has of it.
struct Fake {
  supervise::Streams streams;
  UniqueFd control;
  UniqueFd pidfd;
  UniqueFd notifications;
  UniqueFd terminal;
  std::optional<supervise::Tree> tree;
  std::optional<supervise::Watched> watched;
};

Result<std::unique_ptr<Fake>> begin_fake(const FakeRun& run) {
  auto pair = SBX_TRY(
      supervise::make_streams(run.from, run.stdin_file, form_of(run), static_cast<uid_t>(-1)));
  auto control = SBX_TRY(sys::make_packet_pair());
  int listener[2] = {-1, -1};
  if (run.listener && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, listener) != 0)
    ::_exit(98);
  int master = -1, slave = -1;
  if (run.terminal && ::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) ::_exit(97);
  const pid_t init = ::fork();
  if (init == 0) {
    control.first.reset();
    pair.supervisor = {};
    if (run.listener) ::dup2(listener[1], kListenerSocket);
    if (master >= 0) ::close(master);
    be_init(run, control.second.get(), pair, slave);
  }
  auto fake = std::make_unique<Fake>();
  fake->streams = std::move(pair.supervisor);
  fake->control = std::move(control.first);
  fake->pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, init, 0)));
  fake->terminal = UniqueFd(master);
  control.second.reset();
  pair.child_in.reset();
  pair.child_out.reset();
  pair.child_err.reset();
  if (slave >= 0) ::close(slave);
  if (run.listener) ::close(listener[1]);
  fake->notifications = UniqueFd(run.listener ? receive_fd(listener[0]) : -1);
  supervise::Tree::Handles handles{
      .pid = init, .pid1 = fake->pidfd.get(), .control = fake->control.get()};
  int scratch = -1;
  if (run.adjust) run.adjust(handles, scratch);
  fake->tree.emplace(handles);
  fake->watched.emplace(supervise::Watched{.tree = *fake->tree,
                                           .listener = fake->notifications.get(),
                                           .scratch = scratch,
                                           .terminal = master});
  return fake;
}

std::string failure_text(const Error& error) {
  std::string failed;
  put(failed, "error " + error.code);
  put(failed, error.text());
  return failed;
}

Result<std::string> supervise_one(const FakeRun& run) {
  SBX_TRY(supervise::hold_standard_descriptors());
  const auto signals = SBX_TRY(supervise::SignalScope::make());
  const auto fake = SBX_TRY(begin_fake(run));
  if (run.before_supervising) run.before_supervising();
  return describe_outcome(SBX_TRY(supervise::supervise(
      run.settings, *fake->watched, {.streams = std::move(fake->streams)}, {.signals = &signals})));
}

std::string supervise_fake(const FakeRun& run) {
  const auto text = supervise_one(run);
  return text ? *text : failure_text(text.error());
}

Result<std::array<std::string, 2>> supervise_two(const FakeRun& first, const FakeRun& second) {
  SBX_TRY(supervise::hold_standard_descriptors());
  const auto one = SBX_TRY(begin_fake(first));
  const auto two = SBX_TRY(begin_fake(second));
  EventLoop loop = SBX_TRY(EventLoop::make());
  supervise::Supervisor of_one(loop, first.settings, *one->watched,
                               {.streams = std::move(one->streams)}, {});
  supervise::Supervisor of_two(loop, second.settings, *two->watched,
                               {.streams = std::move(two->streams)}, {});
  SBX_TRY(of_one.start());
  SBX_TRY(of_two.start());
  while (!of_one.over() || !of_two.over()) SBX_TRY(loop.run_once());
  return std::array{describe_outcome(of_one.finish()), describe_outcome(of_two.finish())};
}

}  // namespace

namespace {

/// A process that supervises, and the answers that it writes.
Running start_supervisor(const FakeRun& run, const std::function<std::string()>& supervise) {
  int answer[2];
  if (::pipe2(answer, O_CLOEXEC) != 0) std::abort();
  std::fflush(nullptr);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The test's own descriptors must not be 0 to 2, which are replaced here.
    for (int fd = 0; fd < 3; ++fd) put_in_place(fd, fd == 0 ? run.in : fd == 1 ? run.out : run.err);
    const UniqueFd kept(::fcntl(answer[1], F_DUPFD_CLOEXEC, 800));
    ::close_range(3, 799, 0);
    // The main function uses higher descriptors (TestPipe); the other ends must not stay open here.
    for (const int fd : run.not_in_supervisor) ::close(fd);
    (void)sys::write_all(kept.get(), supervise());
    ::_exit(0);
  }
  ::close(answer[1]);
  return {supervisor, UniqueFd(answer[0])};
}

std::string with_costs(std::string text, std::uint64_t kib_before) {
  put(text, own_cpu_ms());
  put(text, peak_kib() - kib_before);
  return text;
}

}  // namespace

Running start(const FakeRun& run) {
  return start_supervisor(run, [&run] {
    const std::uint64_t before = peak_kib();
    return with_costs(supervise_fake(run), before);
  });
}

namespace {

Seen read_seen(Reader& reader) {
  Seen seen{.verdict = reader.next(), .detail = reader.next()};
  if (seen.verdict.starts_with("error")) return seen;
  seen.notes = reader.next();
  seen.denials = reader.next();
  seen.limits = reader.next();
  seen.degraded = reader.next();
  seen.cpu_time_means = reader.next();
  seen.out = get_stream(reader);
  seen.err = get_stream(reader);
  seen.write_error = reader.next();
  seen.usage.wall_ms = reader.number();
  seen.usage.user_ms = reader.number();
  seen.usage.system_ms = reader.number();
  return seen;
}

}  // namespace

std::string Running::answer() {
  const auto text = sys::read_all(answer_.get(), 1 << 28);
  ::waitpid(supervisor_, nullptr, 0);
  return text.value_or("");
}

Seen Running::finish() {
  Reader reader{.text = answer()};
  Seen seen = read_seen(reader);
  if (seen.verdict.starts_with("error")) return seen;
  seen.cpu_ms = reader.number();
  seen.grown_kib = static_cast<std::int64_t>(reader.number());
  return seen;
}

std::array<Seen, 2> run_together(const FakeRun& first, const FakeRun& second) {
  Running running = start_supervisor(first, [&] {
    const auto both = supervise_two(first, second);
    return both ? both->front() + both->back() : failure_text(both.error());
  });
  Reader reader{.text = running.answer()};
  Seen one = read_seen(reader);
  return {std::move(one), read_seen(reader)};
}

bool send_listener(int number) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = 4, .filter = code};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                            SECCOMP_FILTER_FLAG_NEW_LISTENER | (1UL << 5), &program);
  if (fd >= 0) send_fd(kListenerSocket, static_cast<int>(fd));
  if (fd >= 0) ::close(static_cast<int>(fd));
  ::close(kListenerSocket);
  return fd >= 0;
}

Filtered::Filtered(int number, const std::function<void()>& main) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], kListenerSocket);
    ::close(ends[0]);
    ::close(ends[1]);
    if (send_listener(number)) main();
    ::_exit(0);
  }
  ::close(ends[1]);
  listener = UniqueFd(receive_fd(ends[0]));
  ::close(ends[0]);
}

Filtered::~Filtered() {
  ::kill(pid, SIGKILL);
  listener.reset();
  ::waitpid(pid, nullptr, 0);
}

bool refuse_call(int number, int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = 4, .filter = code};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

TestPipe::TestPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  read = UniqueFd(::fcntl(ends[0], F_DUPFD_CLOEXEC, 801));
  write = UniqueFd(::fcntl(ends[1], F_DUPFD_CLOEXEC, 801));
  ::close(ends[0]);
  ::close(ends[1]);
}

void TestPipe::fill() const {
  const int flags = ::fcntl(write.get(), F_GETFL);
  ::fcntl(write.get(), F_SETFL, flags | O_NONBLOCK);
  const std::string block(4096, 'f');
  while (::write(write.get(), block.data(), block.size()) > 0) {
  }
  ::fcntl(write.get(), F_SETFL, flags);
}

std::string TestPipe::read_all() const {
  return sys::read_all(read.get(), 1 << 28).value_or("");
}

UniqueFd temporary_file(int flags) {
  const UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const UniqueFd again(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags));
  return UniqueFd(::fcntl(again.get(), F_DUPFD_CLOEXEC, 801));
}

std::string content_of(int fd) {
  ::lseek(fd, 0, SEEK_SET);
  return sys::read_all(fd, 1 << 28).value_or("");
}

}  // namespace sbx::test
