#include "supervise/verdict.hpp"

#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <type_traits>

namespace sbx::supervise {
namespace {

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name);
}

Milliseconds in_milliseconds(std::uint64_t time) {
  return Milliseconds{static_cast<std::int64_t>(time / 1000)};
}

bool cpu_time_is_spent(const Settings& settings, CpuTime used) {
  const auto budget = static_cast<std::uint64_t>(settings.budgets.cpu_time.count()) * 1000;
  return budget > 0 && used.total() >= budget;
}

/// The kernel killed a process although the budget was not exhausted: a limit around sbx, or the
/// host, was. Doesn't apply if the sandbox was seen above its budget: the surrounding group also
/// counts kills of other processes.
bool killed_from_outside(const BudgetsSeen& seen) {
  return (seen.outer_kill && !seen.memory_over) || (seen.memory_killed && !seen.memory_limit_met);
}

/// A fork takes a slot before the process exists, and keeps it even while it is being refused
/// (copy_process() counts before it checks RLIMIT_NPROC). On a busy machine many are in progress at
/// once, and are refused below the limit that others can observe.
bool failed_near_process_limit(const Verdict& verdict, const Settings& settings,
                               const BudgetsSeen& seen) {
  constexpr std::uint64_t kSmallest = 16;  // below this, one process less is nothing unusual
  const std::uint64_t near = settings.budgets.processes - settings.budgets.processes / 8;
  return seen.processes_evidence == Evidence::sampled && verdict != Verdict(Exited{0}) &&
         settings.budgets.processes >= kSmallest && seen.processes_peak >= near;
}

std::string memory_sentence(const Settings& settings, const BudgetsSeen& seen) {
  // Without its size: that is measured at another moment than the peak and can exceed it.
  const std::string& name = seen.largest.name;
  if (killed_from_outside(seen))
    return "the kernel killed a process for want of memory before the limit of " +
           describe(settings.budgets.memory) + " was reached (" +
           (name.empty() ? "" : "largest process: " + name + "; ") + "peak " +
           describe(Bytes{seen.memory_peak}) + "): the host, or a cgroup around sbx, had none left";
  std::string facts = "limits.memory";
  if (!name.empty()) facts += "; largest process: " + name;
  if (seen.memory_in_sockets > settings.budgets.memory.count / 16)
    facts += "; " + describe(Bytes{seen.memory_in_sockets}) + " in sockets";
  return std::string(seen.memory_is_shared ? "the session's memory limit of "
                                           : "memory limit of ") +
         describe(settings.budgets.memory) + " reached (" + facts + ")" +
         (settings.memory_is_granted ? ", the limit of the cgroup that sbx runs in" : "");
}

/// Describes a budget that has no sentence of its own.
std::string plain_sentence(const Settings& settings, Budget budget) {
  const std::string name = name_of(budget);
  std::string text = "budget of limits." + name + " spent";
  with_budget(settings.budgets, name, [&](auto value) {
    if constexpr (std::is_arithmetic_v<decltype(value)>)
      text += ": " + std::to_string(value);
    else
      text += ": " + describe(value);
  });
  return text;
}

bool is_written_over(const Settings& settings, const BudgetsSeen& seen) {
  return (settings.disk_is_host_too || settings.shared_memory_is_lent) &&
         seen.written > settings.budgets.disk.count;
}

/// Whose writes count besides the private disk.
std::string places_written_to(const Settings& settings) {
  if (!settings.shared_memory_is_lent) return "live grants";
  return settings.disk_is_host_too ? "live grants and /dev/shm" : "/dev/shm";
}

std::string disk_sentence(const Settings& settings, const BudgetsSeen& seen) {
  if (settings.disk_in_directory && seen.disk_files_met)
    return "more than " + std::to_string(settings.budgets.disk_files) +
           " files on the private disk (limits.disk_files)";
  if (settings.disk_in_directory && seen.disk_met)
    return "disk budget of " + describe(settings.budgets.disk) + " reached, " +
           describe(Bytes{seen.disk_peak}) + " on the private disk (limits.disk)";
  const bool written_over = is_written_over(settings, seen);
  if (!written_over && seen.live_files > settings.budgets.disk_files)
    return "more than " + std::to_string(settings.budgets.disk_files) +
           " new files and directories in live grants (limits.disk_files)";
  if (!written_over && !seen.unlisted.empty())
    return "new files in a live grant can't be counted: '" + seen.unlisted +
           "' can't be listed any more (limits.disk_files)";
  if (!seen.unreadable.empty() && seen.written <= settings.budgets.disk.count)
    return "what " + seen.unreadable +
           " writes to live grants can't be counted: it runs a program that it may not read, or "
           "made "
           "itself unreadable (limits.disk)";
  std::string grown;
  if (seen.grown > 0)
    grown = ", " + (seen.grown == seen.written ? "" : describe(Bytes{seen.grown}) + " of it ") +
            "by the growth of a file system in memory, whoever wrote there";
  return "disk budget of " + describe(settings.budgets.disk) + " reached, " +
         describe(Bytes{seen.written}) + " written to " + places_written_to(settings) + grown +
         " (limits.disk)";
}

std::string output_sentence(const Settings& settings, const Measured& measured) {
  if (!settings.capture)
    return "more than " + describe(settings.passed_cap) + " written to " + measured.stream +
           " (output.passed)";
  return "more than " +
         describe(measured.stream == "stderr" ? settings.stderr_cap : settings.stdout_cap) +
         " written to " + measured.stream + " (output." + measured.stream +
         ", with output.exceed = \"kill\")";
}

/// Of other signals the description says what the name says: "killed", "terminated".
bool explains(int signal) {
  constexpr auto kExplained = std::to_array(
      {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGPIPE, SIGALRM, SIGXCPU, SIGXFSZ, SIGSYS});
  return std::ranges::find(kExplained, signal) != kExplained.end();
}

struct Sentence {
  const Settings& settings;
  const Measured& measured;

  std::string operator()(const Exited& end) const {
    return "the command exited with status " + std::to_string(end.code);
  }
  std::string operator()(const Signaled& end) const {
    const char* const words = explains(end.signal) ? ::sigdescr_np(end.signal) : nullptr;
    std::string text = "killed by signal " + std::to_string(end.signal);
    const char* const name = ::sigabbrev_np(end.signal);
    if (name != nullptr) text += std::string(", SIG") + name;
    if (words == nullptr) return text;
    text += std::string(" (") + words + ")";
    const std::size_t first = text.find('(') + 1;
    text[first] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[first])));
    return text;
  }
  std::string operator()(const Denied& end) const {
    return "the denied system call " + end.call + " ended the run (syscalls.denied = \"kill\")";
  }
  std::string operator()(const Cancelled& end) const {
    return "cancelled by " + signal_name(end.signal);
  }
  std::string operator()(const Lost&) const {
    return "the sandbox's init was killed from outside: the command had begun, and how it ended is "
           "not known";
  }
  std::string operator()(const OverBudget& end) const {
    switch (end.budget) {
      case Budget::wall_time:
        return "wall-time budget of " + describe(settings.budgets.wall_time) +
               " spent (limits.wall_time)";
      case Budget::cpu_time:
        if (measured.by_session) return "the session's CPU-time budget is spent (session.cpu_time)";
        return "CPU-time budget of " + describe(settings.budgets.cpu_time) + " spent, " +
               describe(in_milliseconds(measured.cpu_microseconds)) + " used (limits.cpu_time)";
      case Budget::output:
        return output_sentence(settings, measured);
      case Budget::file_size:
        return "a file would have grown over " + describe(settings.budgets.file_size) +
               " (limits.file_size)";
      case Budget::disk:
        if (measured.by_session)
          return "the session's disk budget of " + describe(settings.budgets.disk) +
                 " is spent (limits.disk)";
        return disk_sentence(settings, measured.budgets);
      case Budget::memory:
        if (measured.by_session)
          return "the session's memory limit of " + describe(settings.budgets.memory) +
                 " reached (limits.memory); this call held the most";
        return memory_sentence(settings, measured.budgets);
      default:
        return plain_sentence(settings, end.budget);
    }
  }
};

}  // namespace

Verdict verdict_of_status(int wait_status, const Settings& settings, CpuTime used) {
  if (!WIFSIGNALED(wait_status)) return Exited{WEXITSTATUS(wait_status)};
  const int signal = WTERMSIG(wait_status);
  if (signal == SIGXFSZ && settings.budgets.file_size.count != Budgets{}.file_size.count)
    return OverBudget{Budget::file_size};
  if ((signal == SIGXCPU || signal == SIGKILL) && cpu_time_is_spent(settings, used))
    return OverBudget{Budget::cpu_time};
  return Signaled{signal};
}

std::string detail_of(const Verdict& verdict, const Settings& settings, const Measured& measured) {
  return std::visit(Sentence{settings, measured}, verdict);
}

std::vector<LimitMet> limits_met(const Verdict& verdict, const Settings& settings,
                                 const Measured& measured) {
  const BudgetsSeen& seen = measured.budgets;
  std::vector<LimitMet> met;
  // For a private disk in a directory it is known which of its two limits was exceeded.
  const bool written_over =
      is_written_over(settings, seen) && !seen.disk_met && !seen.disk_files_met;
  if (seen.disk_met || written_over)
    met.push_back({.limit = "disk",
                   .value = settings.budgets.disk.count,
                   .peak = written_over ? seen.written
                                        : std::max(seen.disk_peak, settings.budgets.disk.count),
                   .evidence = Evidence::sampled});
  const bool live_files_over =
      settings.disk_is_host_too && seen.live_files > settings.budgets.disk_files;
  if (seen.disk_files_met || live_files_over)
    met.push_back({.limit = "disk_files",
                   .value = settings.budgets.disk_files,
                   .peak = live_files_over ? seen.live_files : settings.budgets.disk_files,
                   .evidence = Evidence::sampled});
  if (seen.processes_met || failed_near_process_limit(verdict, settings, seen))
    met.push_back({.limit = "processes",
                   .value = settings.budgets.processes,
                   .peak = seen.processes_peak,
                   .evidence = seen.processes_evidence});
  if (verdict == Verdict(OverBudget{Budget::file_size}))
    met.push_back({.limit = "file_size",
                   .value = settings.budgets.file_size.count,
                   .evidence = Evidence::signal});
  else if (measured.file_size_met)
    met.push_back({.limit = "file_size",
                   .value = settings.budgets.file_size.count,
                   .peak = settings.budgets.file_size.count,
                   .evidence = Evidence::sampled});
  if (verdict == Verdict(OverBudget{Budget::memory}) && !killed_from_outside(seen))
    met.push_back({.limit = "memory",
                   .value = settings.budgets.memory.count,
                   .peak = seen.memory_peak,
                   .evidence = seen.memory_killed ? Evidence::kernel_counter : Evidence::sampled});
  return met;
}

}  // namespace sbx::supervise
