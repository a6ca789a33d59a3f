#include "plan/limits.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

namespace sbx::plan {
namespace {

constexpr std::uint64_t kDefaultStack = std::uint64_t{8} << 20;
// With an unlimited stack the kernel uses the legacy layout: mmap grows upwards from a fixed base,
// with less randomness.
constexpr std::uint64_t kLargestStack = std::uint64_t{1} << 30;
constexpr std::uint64_t kLockedMemory = std::uint64_t{64} << 10;
constexpr std::uint64_t kQueuedSignals = 1024;
constexpr std::uint64_t kQueuedSignalsEach = 4;  ///< for each process
/// Descriptors in flight in unix sockets count for the user, and each sender compares the sum with
/// its own RLIMIT_NOFILE (too_many_unix_fds): so many more must be left for sbx than a program can
/// send.
constexpr std::uint64_t kDescriptorsOfSbx = 512;

class ProcessLimits {
 public:
  ProcessLimits(const host::Host& host, Plan& plan) : host_(host), plan_(plan) {}

  /// Sets soft and hard limit, at most the caller's hard limit. `promise` is reported as weaker if
  /// it is lowered.
  void add(int resource, std::uint64_t value, Promise promise, const Origin& origin) {
    const std::uint64_t allowed = std::min(value, hard(resource));
    if (allowed < value)
      plan_.degraded.push_back({.promise = promise,
                                .why = fmt::format("the caller's hard limit is {}", allowed),
                                .instead = fmt::format("{} instead of {}", allowed, value)});
    plan_.process_limits.push_back(
        {.resource = resource, .soft = allowed, .hard = allowed, .origin = origin});
  }

  /// Open files: below the caller's hard limit, which sbx raises its own to.
  void add_open_files(const policy::Limits& limits) {
    const std::uint64_t all = hard(RLIMIT_NOFILE);
    const std::uint64_t most =
        all / 2 > kDescriptorsOfSbx ? all - kDescriptorsOfSbx : all - all / 2;
    const std::uint64_t wanted = limits.open_files.value;
    const std::uint64_t allowed = std::min(wanted, most);
    if (allowed < wanted)
      plan_.degraded.push_back(
          {.promise = Promise::open_files,
           .why = fmt::format("the caller's hard limit is {}, of which sbx needs a part", all),
           .instead = fmt::format("{} instead of {}", allowed, wanted)});
    plan_.process_limits.push_back({.resource = RLIMIT_NOFILE,
                                    .soft = allowed,
                                    .hard = allowed,
                                    .origin = limits.open_files.origin});
  }

  /// A limit that no policy promises: lowered without a report.
  void add_quiet(int resource, std::uint64_t soft, std::uint64_t most) {
    const std::uint64_t allowed = std::min(most, hard(resource));
    plan_.process_limits.push_back(
        {.resource = resource, .soft = std::min(soft, allowed), .hard = allowed, .origin = {}});
  }

  [[nodiscard]] std::uint64_t soft(int resource) const {
    const auto found = host_.rlimits.find(resource);
    return found == host_.rlimits.end() ? RLIM_INFINITY : found->second.soft;
  }

  [[nodiscard]] std::uint64_t hard(int resource) const {
    const auto found = host_.rlimits.find(resource);
    return found == host_.rlimits.end() ? RLIM_INFINITY : found->second.hard;
  }

 private:
  const host::Host& host_;
  Plan& plan_;
};

/// Where a cgroup counts tasks, its limit must be reached first: only the cgroup counts refusals,
/// and fork(2) checks RLIMIT_NPROC before it. Not in a held sandbox, whose group has room for the
/// inits of calls: programs must not take that, so each gets a limit that counts the inits that
/// there are (spawn/payload.cpp).
std::uint64_t nproc_limit(const Plan& plan) {
  // PID 1 has the same uid, a keeper another one.
  const std::uint64_t with_init = plan.budgets.processes + (plan.identity.own_uids ? 0 : 1);
  if (plan.calls > 0) return with_init;
  return plan.control_group.processes == host::Means::none ? with_init : 2 * with_init;
}

void add_process_limits(const policy::Limits& limits, const host::Host& host, Plan& plan) {
  ProcessLimits list(host, plan);
  // 1, not 0: the kernel starts a core_pattern pipe even at 0 and refuses at exactly 1, core(5).
  list.add(RLIMIT_CORE, 1, Promise::no_core_dumps, {});
  list.add_open_files(limits);
  list.add(RLIMIT_FSIZE, limits.file_size.value.count, Promise::file_size, limits.file_size.origin);
  // It counts all processes of a user: of the caller too, where the program has its uid. There the
  // supervisor counts (supervise/owner_calls.hpp).
  if (!plan.identity.callers_own)
    list.add(RLIMIT_NPROC, nproc_limit(plan), Promise::processes, limits.processes.origin);
  // Higher than the budget, so that the supervisor's sum over the tree decides: the kernel counts
  // whole ticks here and on a busy machine may charge them to the wrong task.
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limits.cpu_time.value).count();
  list.add(RLIMIT_CPU, static_cast<std::uint64_t>(seconds + seconds / 8 + 1), Promise::cpu_time,
           limits.cpu_time.origin);
  // Not RLIMIT_DATA or RLIMIT_AS: both count address space that a program only reserves, and the
  // sanitizers of compilers, Go, Java and node reserve terabytes.
  const std::uint64_t stack = list.soft(RLIMIT_STACK);
  list.add_quiet(RLIMIT_STACK, stack > kLargestStack ? kDefaultStack : stack, RLIM_INFINITY);
  list.add_quiet(RLIMIT_MEMLOCK, kLockedMemory, kLockedMemory);
  // The kernel counts queued signals and timers for the caller too: without a limit one program
  // takes all of them.
  const std::uint64_t signals = kQueuedSignals + kQueuedSignalsEach * plan.budgets.processes;
  list.add_quiet(RLIMIT_SIGPENDING, signals, signals);
}

/// Uniform but for a negligible bias of 2^-32.
std::uint32_t random_below(std::uint32_t bound) {
  std::uint32_t number = 0;
  // Up to 256 bytes, after boot, this neither blocks nor is interrupted. If it fails, the first
  // CPUs are taken.
  (void)!::getrandom(&number, sizeof number, GRND_NONBLOCK);
  return static_cast<std::uint32_t>((std::uint64_t{number} * bound) >> 32U);
}

std::vector<int> chosen_cpus(std::vector<int> usable, double cpus) {
  const auto wanted = static_cast<std::size_t>(std::max(1.0, std::ceil(cpus)));
  if (wanted >= usable.size()) return usable;
  for (std::size_t place = 0; place < wanted; ++place) {
    const auto left = static_cast<std::uint32_t>(usable.size() - place);
    std::swap(usable[place], usable[place + random_below(left)]);
  }
  usable.resize(wanted);
  std::ranges::sort(usable);
  return usable;
}

/// The supervisor and the sandbox stay in the cgroup that sbx was started in, so its smaller limits
/// apply.
void take_granted(const host::ControlGroup::Granted& granted, Plan& plan) {
  const auto note = [&](Promise promise, const std::string& has, const std::string& wanted) {
    plan.degraded.push_back({.promise = promise,
                             .why = "the cgroup that sbx runs in is limited to " + has,
                             .instead = fmt::format("{} instead of {}", has, wanted)});
  };
  Budgets& budgets = plan.budgets;
  if (granted.memory_bytes && *granted.memory_bytes < budgets.memory.count) {
    const Bytes most{*granted.memory_bytes};
    note(Promise::memory, describe(most), describe(budgets.memory));
    budgets.memory = most;
  }
  if (granted.processes && *granted.processes < budgets.processes) {
    note(Promise::processes, std::to_string(*granted.processes), std::to_string(budgets.processes));
    budgets.processes = *granted.processes;
  }
  if (granted.cpus && *granted.cpus < budgets.cpus) {
    note(Promise::cpus, fmt::format("{:.2f} CPUs", *granted.cpus),
         fmt::format("{:.2f}", budgets.cpus));
    budgets.cpus = *granted.cpus;
  }
}

/// 0 means no limit: at a terminal, a limit that nobody chose (the key's default, or that of the
/// policy "default") doesn't apply.
Milliseconds wall_time_of(const policy::Limits& limits, bool interactive) {
  const Origin& origin = limits.wall_time.origin;
  const bool chosen = origin.layer != Layer::key_default &&
                      (origin.layer != Layer::builtin || origin.file != "default.toml");
  return interactive && !chosen ? Milliseconds{0} : limits.wall_time.value;
}

}  // namespace

void decide_limits(const policy::Policy& policy, const host::Host& host, Plan& plan) {
  const policy::Limits& limits = policy.limits;
  plan.control_group = host.control_group;
#define SBX_BUDGET(name, type, initial, form) plan.budgets.name = limits.name.value;
  SBX_BUDGETS(SBX_BUDGET)
#undef SBX_BUDGET
  plan.budgets.wall_time = wall_time_of(limits, plan.interactive);
  take_granted(host.control_group.granted, plan);
  plan.affinity = chosen_cpus(host.cpus, plan.budgets.cpus);
  add_process_limits(limits, host, plan);
  const bool is_held_around = host.control_group.granted.cpus == plan.budgets.cpus;
  const std::size_t whole = plan.affinity.size();
  if (plan.control_group.cpus == host::Means::none && !is_held_around &&
      plan.budgets.cpus != std::ceil(plan.budgets.cpus) &&
      plan.budgets.cpus < static_cast<double>(host.cpus.size()))
    plan.degraded.push_back({.promise = Promise::cpus,
                             .why = "a fraction of a CPU needs a cgroup",
                             .instead = fmt::format("{} CPU{}", whole, whole == 1 ? "" : "s")});
}

void narrow_limits(const policy::Policy& policy, const host::Host& host, Plan& plan) {
  Plan call;
  call.interactive = plan.interactive;
  call.calls = plan.calls;
  decide_limits(policy, host, call);
  plan.budgets.wall_time = call.budgets.wall_time;
  plan.budgets.cpu_time = call.budgets.cpu_time;
  plan.budgets.grace = call.budgets.grace;
  plan.budgets.file_size = call.budgets.file_size;
  plan.process_limits = std::move(call.process_limits);
}

}  // namespace sbx::plan
