#include "cgroup/legacy.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "base/sys.hpp"
#include "cgroup/files.hpp"
#include "cgroup/outliving.hpp"
#include "cgroup/owned_directory.hpp"

namespace sbx::cgroup {

namespace {

constexpr std::uint64_t kNearLimit = std::uint64_t{2} << 20;  // a huge page, or 64 pages a CPU

enum class Controller : std::uint8_t { memory, pids, cpu, cpuacct };
constexpr std::size_t kControllerCount = 4;

/// The groups of one sandbox: cpu and cpuacct are one hierarchy on most machines and share theirs.
struct Directories {
  std::vector<OwnedDirectory> owned;
  std::array<int, kControllerCount> of{-1, -1, -1, -1};  ///< borrowed from `owned`; -1: none
};

/// `make`: makes the group at `path`.
template <class Make>
Status add_directory(Directories& directories, std::vector<UniqueFd>& tasks, std::size_t controller,
                     const std::string& path, Make make) {
  auto same = std::ranges::find(directories.owned, path, &OwnedDirectory::path);
  if (same == directories.owned.end()) {
    OwnedDirectory directory = SBX_TRY(make());
    UniqueFd file(::openat(directory.fd(), "tasks", O_WRONLY | O_CLOEXEC));
    if (!file.valid())
      return fail_errno(ErrorKind::host, "no-cgroup", "cannot open '" + path + "/tasks'");
    tasks.push_back(std::move(file));
    directories.owned.push_back(std::move(directory));
    same = std::prev(directories.owned.end());
  }
  directories.of[controller] = same->fd();
  return {};
}

/// Beyond this a limit of cgroup v1 is none: it is written as the largest number of pages.
constexpr std::uint64_t kNoMemoryLimit = std::uint64_t{1} << 62;

/// Calls back for each group from the own one up to the mounted one.
template <class Look>
void upwards(const std::optional<GroupPath>& place, Look look) {
  if (!place) return;
  for (std::string directory = place->directory(); directory.size() >= place->mount.size();
       directory.resize(directory.rfind('/'))) {
    look(directory);
    if (directory.size() == place->mount.size()) break;
  }
}

}  // namespace

class LegacyGroup final : public Group {
 public:
  /// `outer`: the held group around it, or null.
  LegacyGroup(Directories directories, std::vector<UniqueFd> tasks, const LegacyGroup* outer)
      : directories_(std::move(directories)), tasks_(std::move(tasks)), outer_(outer) {
    if (has(Controller::memory)) listen();
  }

  Status limit(const Budgets& budgets, std::uint64_t of_sbx) override {
    memory_limit_ = budgets.memory.count;
    if (has(Controller::memory)) SBX_TRY(limit_memory(std::to_string(memory_limit_)));
    if (has(Controller::pids))
      SBX_TRY(set(Controller::pids, "pids.max", std::to_string(budgets.processes + of_sbx)));
    if (has(Controller::cpu)) {
      const auto quota =
          static_cast<std::uint64_t>(std::llround(budgets.cpus * static_cast<double>(kPeriod)));
      SBX_TRY(set(Controller::cpu, "cpu.cfs_period_us", std::to_string(kPeriod)));
      SBX_TRY(set(Controller::cpu, "cpu.cfs_quota_us",
                  std::to_string(std::max(quota, kShortestQuota))));
    }
    return {};
  }

  [[nodiscard]] int directory() const override { return -1; }
  /// Each call reads these: opening a file of a control group takes longer than reading it.
  Status hold() override {
    if (!has(Controller::memory)) return {};
    const int memory = at(Controller::memory);
    used_ = UniqueFd(::openat(memory, "memory.usage_in_bytes", O_RDONLY | O_CLOEXEC));
    peak_ = UniqueFd(::openat(memory, "memory.max_usage_in_bytes", O_RDONLY | O_CLOEXEC));
    return {};
  }
  Result<std::unique_ptr<Group>> make_inner() override;
  [[nodiscard]] std::vector<int> descriptors() const override {
    std::vector<int> all;
    for (const OwnedDirectory& each : directories_.owned) all.push_back(each.fd());
    for (const UniqueFd* const each : {&used_, &peak_})
      if (each->valid()) all.push_back(each->get());
    return all;
  }
  void sweep_inner() override {
    for (const OwnedDirectory& each : directories_.owned) sweep(each.path());
  }
  Status move(pid_t) override { return {}; }

  [[nodiscard]] std::vector<int> joins() const override {
    std::vector<int> files;
    for (const UniqueFd& file : tasks_) files.push_back(file.get());
    return files;
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
  /// memory.failcnt stays 0 on newer kernels (seen on 6.18), and the eventfd also reports limits of
  /// groups above. But a process that this limit refused was within a batch of pages of it.
  [[nodiscard]] std::uint64_t memory_limit_met() const override {
    if (outer_ != nullptr) return outer_->memory_limit_met();
    return memory_peak() + kNearLimit >= memory_limit_ ? 1 : 0;
  }
  /// The peak is all that tells, and it never falls by itself.
  void forget_memory_limit() override {
    if (outer_ != nullptr && outer_->memory_limit_met() > 0)
      (void)outer_->set(Controller::memory, "memory.max_usage_in_bytes", "0");
  }
  [[nodiscard]] std::uint64_t memory_held() const override {
    const std::string facts = text(Controller::memory, "memory.stat");
    return number_of(facts, "total_rss") + number_of(facts, "total_shmem") +
           number(Controller::memory, "memory.kmem.usage_in_bytes");
  }
  [[nodiscard]] std::uint64_t memory_used() const override {
    if (used_.valid()) return read_number(used_.get()).value_or(0);
    return number(Controller::memory, "memory.usage_in_bytes");
  }
  [[nodiscard]] std::uint64_t memory_peak() const override {
    if (peak_.valid()) return read_number(peak_.get()).value_or(0);
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
  [[nodiscard]] int at(Controller controller) const {
    return directories_.of[static_cast<std::size_t>(controller)];
  }
  [[nodiscard]] bool has(Controller controller) const { return at(controller) >= 0; }
  [[nodiscard]] Status set(Controller controller, const char* file, std::string_view value) const {
    return write_text(at(controller), file, value);
  }
  [[nodiscard]] std::uint64_t number(Controller controller, const char* file) const {
    return read_number(at(controller), file).value_or(0);
  }
  [[nodiscard]] std::string text(Controller controller, const char* file) const {
    return read_text(at(controller), file).value_or("");
  }

  /// Memory with swap may not be less than memory alone, so that comes first. Where swap is not
  /// counted the group at least does not want any.
  Status limit_memory(const std::string& bytes) const {
    SBX_TRY(set(Controller::memory, "memory.limit_in_bytes", bytes));
    if (::faccessat(at(Controller::memory), "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
      return set(Controller::memory, "memory.memsw.limit_in_bytes", bytes);
    return set(Controller::memory, "memory.swappiness", "0");
  }

  /// cgroup v1 reports a reached limit through an eventfd; cgroup-v1/memory.rst, 10.
  void listen() {
    UniqueFd alarm(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const int directory = at(Controller::memory);
    const UniqueFd counter(::openat(directory, "memory.oom_control", O_RDONLY | O_CLOEXEC));
    if (!alarm.valid() || !counter.valid()) return;
    if (write_text(directory, "cgroup.event_control",
                   std::to_string(alarm.get()) + " " + std::to_string(counter.get())))
      alarm_ = std::move(alarm);
  }

  Directories directories_;
  std::vector<UniqueFd> tasks_;
  const LegacyGroup* outer_;
  UniqueFd alarm_;
  UniqueFd used_;  ///< of a held group
  UniqueFd peak_;  ///< of a held group
  std::uint64_t memory_limit_ = 0;
};

Result<std::unique_ptr<Group>> LegacyGroup::make_inner() {
  Directories inner;
  std::vector<UniqueFd> tasks;
  const std::string name = unique_name();
  Status made;
  do_outliving([&] {  // as make_legacy()
    for (std::size_t i = 0; i < kControllerCount && made; ++i) {
      const auto around =
          std::ranges::find(directories_.owned, directories_.of[i], &OwnedDirectory::fd);
      if (around == directories_.owned.end()) continue;
      made = add_directory(inner, tasks, i, around->path() + "/" + name,
                           [&] { return around->make_inner(name); });
    }
  });
  if (!made) return std::unexpected(std::move(made).error());
  return std::make_unique<LegacyGroup>(std::move(inner), std::move(tasks), this);
}

LegacyMade make_legacy(const Hierarchies& hierarchies) {
  LegacyMade made;
  Directories directories;
  std::vector<UniqueFd> tasks;
  const std::optional<GroupPath>* const places[] = {&hierarchies.memory, &hierarchies.pids,
                                                    &hierarchies.cpu, &hierarchies.cpuacct};
  const std::string name = unique_name();
  do_outliving([&] {  // a group without its mark would stay for ever
    for (std::size_t i = 0; i < kControllerCount; ++i) {
      if (!*places[i]) continue;
      const std::string parent = (*places[i])->directory();
      sweep(parent);
      const Status added = add_directory(directories, tasks, i, parent + "/" + name,
                                         [&] { return OwnedDirectory::make(parent, name); });
      if (!added && made.why.empty()) made.why = added.error().text();
    }
  });
  if (directories.owned.empty()) return made;
  made.limits_cpus = directories.of[static_cast<std::size_t>(Controller::cpu)] >= 0;
  made.group = std::make_unique<LegacyGroup>(std::move(directories), std::move(tasks), nullptr);
  return made;
}

host::ControlGroup::Granted granted_by_legacy(const Hierarchies& hierarchies) {
  host::ControlGroup::Granted granted;
  upwards(hierarchies.memory, [&](const std::string& directory) {
    auto limit = read_number(AT_FDCWD, directory + "/memory.limit_in_bytes");
    if (limit && *limit >= kNoMemoryLimit) limit.reset();
    lower_to(granted.memory_bytes, limit);
  });
  upwards(hierarchies.pids, [&](const std::string& directory) {
    lower_to(granted.processes, read_number(AT_FDCWD, directory + "/pids.max"));
  });
  upwards(hierarchies.cpu, [&](const std::string& directory) {
    const auto quota = read_number(AT_FDCWD, directory + "/cpu.cfs_quota_us");  // -1: none
    const auto period = read_number(AT_FDCWD, directory + "/cpu.cfs_period_us");
    if (quota && period && *period > 0)
      lower_to(granted.cpus,
               std::optional(static_cast<double>(*quota) / static_cast<double>(*period)));
  });
  return granted;
}

}  // namespace sbx::cgroup
