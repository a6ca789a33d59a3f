#include "budget/legacy.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "budget/files.hpp"
#include "budget/legacy_attacher.hpp"
#include "budget/legacy_messages.hpp"
#include "budget/owned_folder.hpp"

namespace sbx::budget {

namespace {

constexpr std::uint64_t kPeriod = 100'000;                    // microseconds
constexpr std::uint64_t kShortestQuota = 1000;                // which the kernel accepts
constexpr std::uint64_t kNearLimit = std::uint64_t{2} << 20;  // a huge page, or 64 pages a CPU

std::optional<GroupsMade> receive_groups(int channel, std::array<UniqueFd, kControllers>& folders) {
  GroupsMade made;
  sys::Message message = sys::receive_message(channel, std::as_writable_bytes(std::span(&made, 1)));
  if (message.length != sizeof made) return std::nullopt;
  std::size_t next = 0;
  for (UniqueFd& folder : message.fds) {
    while (next < kControllers && !made.made[next]) ++next;
    if (next < kControllers) folders[next++] = std::move(folder);
  }
  return made;
}

}  // namespace

class LegacyGroup final : public Group {
 public:
  LegacyGroup(LegacyAttacher attacher, std::array<OwnedFolder, kControllers> folders)
      : folders_(std::move(folders)), attacher_(std::move(attacher)) {
    if (has(Controller::memory)) listen();
  }

  Status limit(const Limits& limits) override {
    memory_limit_ = limits.memory.count;
    if (has(Controller::memory)) SBX_TRY(limit_memory(std::to_string(memory_limit_)));
    if (has(Controller::pids))
      SBX_TRY(set(Controller::pids, "pids.max", std::to_string(limits.processes + 1)));
    if (has(Controller::cpu)) {
      const auto quota =
          static_cast<std::uint64_t>(std::llround(limits.cpus * static_cast<double>(kPeriod)));
      SBX_TRY(set(Controller::cpu, "cpu.cfs_period_us", std::to_string(kPeriod)));
      SBX_TRY(set(Controller::cpu, "cpu.cfs_quota_us",
                  std::to_string(std::max(quota, kShortestQuota))));
    }
    return {};
  }

  [[nodiscard]] int folder() const override { return -1; }

  Status begin_attach(pid_t process) override {
    if (attached_once_) return attach_directly(process);
    attached_once_ = true;
    const Attach order{process};
    if (::send(attacher_.channel_.get(), &order, sizeof order, MSG_NOSIGNAL) == sizeof order)
      return {};
    return fail_errno(ErrorKind::setup, "setup-cgroup", "the attacher for cgroups died");
  }

  Status end_attach() override {
    if (!attacher_.channel_.valid()) return {};
    Attached answer{};
    ssize_t got = ::recv(attacher_.channel_.get(), &answer, sizeof answer, 0);
    while (got < 0 && errno == EINTR)
      got = ::recv(attacher_.channel_.get(), &answer, sizeof answer, 0);
    attacher_.end();  // PID 1 is busy with its root meanwhile
    if (got == sizeof answer && answer.error == 0) return {};
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "setup-cgroup",
                      .message = "cannot put the sandbox into its cgroup",
                      .errno_value = got == sizeof answer ? answer.error : 0});
  }

  [[nodiscard]] bool limits_memory() const override { return has(Controller::memory); }
  [[nodiscard]] bool limits_processes() const override { return has(Controller::pids); }
  [[nodiscard]] bool counts_cpu_time() const override { return has(Controller::cpuacct); }

  [[nodiscard]] Alarm memory_alarm() const override { return {alarm_.get(), EPOLLIN}; }
  void quiet_alarm() override {
    std::uint64_t rings = 0;
    (void)!::read(alarm_.get(), &rings, sizeof rings);  // how often does not matter
  }
  [[nodiscard]] std::uint64_t memory_kills() const override {
    return number_of(text(Controller::memory, "memory.oom_control"), "oom_kill");
  }
  /// memory.failcnt stays 0 on newer kernels (seen on 6.18), and the alarm rings for limits further
  /// out too: but who was refused at this limit has stood within a batch of pages of it.
  [[nodiscard]] std::uint64_t memory_limit_met() const override {
    return memory_peak() + kNearLimit >= memory_limit_ ? 1 : 0;
  }
  [[nodiscard]] std::uint64_t memory_used() const override {
    return number(Controller::memory, "memory.usage_in_bytes");
  }
  [[nodiscard]] std::uint64_t memory_peak() const override {
    return number(Controller::memory, "memory.max_usage_in_bytes");
  }

  [[nodiscard]] std::optional<CpuTime> cpu_time() const override {
    if (!has(Controller::cpuacct)) return std::nullopt;
    const std::uint64_t all = number(Controller::cpuacct, "cpuacct.usage") / 1000;
    const std::uint64_t system =
        std::min(all, number(Controller::cpuacct, "cpuacct.usage_sys") / 1000);
    return CpuTime{.user_microseconds = all - system, .system_microseconds = system};
  }

  [[nodiscard]] std::uint64_t process_refusals() const override {
    return number_of(text(Controller::pids, "pids.events"), "max");
  }
  [[nodiscard]] std::uint64_t processes_peak() const override {
    return number(Controller::pids, "pids.peak");
  }

  bool freeze(bool) override { return false; }
  [[nodiscard]] bool is_frozen() const override { return false; }
  bool kill() override { return false; }

 private:
  [[nodiscard]] const OwnedFolder& at(Controller controller) const {
    return folders_[static_cast<std::size_t>(controller)];
  }
  [[nodiscard]] bool has(Controller controller) const { return at(controller).valid(); }
  [[nodiscard]] Status set(Controller controller, const char* file, std::string_view value) const {
    return write_text(at(controller).fd(), file, value);
  }
  [[nodiscard]] std::uint64_t number(Controller controller, const char* file) const {
    return read_number(at(controller).fd(), file).value_or(0);
  }
  [[nodiscard]] std::string text(Controller controller, const char* file) const {
    return read_text(at(controller).fd(), file).value_or("");
  }

  /// Memory with swap may not be less than memory alone, so that comes first. Where swap is not
  /// counted the group at least does not want any.
  Status limit_memory(const std::string& bytes) const {
    SBX_TRY(set(Controller::memory, "memory.limit_in_bytes", bytes));
    if (::faccessat(at(Controller::memory).fd(), "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
      return set(Controller::memory, "memory.memsw.limit_in_bytes", bytes);
    return set(Controller::memory, "memory.swappiness", "0");
  }

  /// cgroup v1 tells of a met limit through an eventfd; cgroup-v1/memory.rst, 10.
  void listen() {
    UniqueFd alarm(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const int folder = at(Controller::memory).fd();
    const UniqueFd counter(::openat(folder, "memory.oom_control", O_RDONLY | O_CLOEXEC));
    if (!alarm.valid() || !counter.valid()) return;
    if (write_text(folder, "cgroup.event_control",
                   std::to_string(alarm.get()) + " " + std::to_string(counter.get())))
      alarm_ = std::move(alarm);
  }

  Status attach_directly(pid_t process) const {
    for (const OwnedFolder& folder : folders_)
      if (folder.valid()) SBX_TRY(write_text(folder.fd(), "cgroup.procs", std::to_string(process)));
    return {};
  }

  std::array<OwnedFolder, kControllers> folders_;
  LegacyAttacher attacher_;  // before the folders are removed it must have left them
  UniqueFd alarm_;
  std::uint64_t memory_limit_ = 0;
  bool attached_once_ = false;
};

Result<LegacyAttacher> LegacyAttacher::start() {
  auto [channel, other] = SBX_TRY(sys::make_packet_pair());
  const pid_t pid = ::fork();
  if (pid == 0) {
    channel.reset();
    run_legacy_attacher(other.get());
  }
  if (pid < 0) return fail_errno(ErrorKind::setup, "setup-cgroup", "cannot fork");
  return LegacyAttacher(pid, std::move(channel));
}

LegacyAttacher::LegacyAttacher(LegacyAttacher&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}

void LegacyAttacher::end() {
  channel_.reset();
  if (pid_ < 0) return;
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

LegacyAttacher::Made LegacyAttacher::wait(LegacyAttacher attacher) {
  Made answer;
  std::array<UniqueFd, kControllers> fds;
  const auto made = receive_groups(attacher.channel_.get(), fds);
  if (!made) {
    answer.why = "the attacher for cgroups died";
    return answer;
  }
  if (made->has_memory_granted) answer.granted.memory_bytes = made->memory_granted;
  if (made->has_processes_granted) answer.granted.processes = made->processes_granted;
  if (made->has_cpus_granted) answer.granted.cpus = made->cpus_granted;
  answer.why = made->why.data();
  answer.limits_cpus = made->made[static_cast<std::size_t>(Controller::cpu)];
  std::array<OwnedFolder, kControllers> folders;
  bool any = false;
  for (std::size_t i = 0; i < kControllers; ++i) {
    if (!fds[i].valid()) continue;
    folders[i] = OwnedFolder::adopt(made->paths[i].data(), std::move(fds[i]));
    any = true;
  }
  if (any) answer.group = std::make_unique<LegacyGroup>(std::move(attacher), std::move(folders));
  return answer;
}

}  // namespace sbx::budget
