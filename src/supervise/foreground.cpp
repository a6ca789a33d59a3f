#include "supervise/foreground.hpp"

#include <time.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "base/unique_fd.hpp"
#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {
namespace {

struct Facts {
  pid_t group = 0;
  std::uint64_t began = 0;  ///< ticks since the machine's start
};

/// Fields 5 and 22 of proc_pid_stat(5).
std::optional<Facts> facts_of(pid_t process) {
  constexpr std::size_t kLargest = 4096;
  const auto text = sys::read_file("/proc/" + std::to_string(process) + "/stat", kLargest);
  const std::size_t name_end = text ? text->rfind(')') : std::string::npos;  // a name may have one
  if (name_end == std::string::npos) return std::nullopt;
  constexpr int kGroup = 5;
  constexpr int kBegan = 22;
  Facts facts;
  std::string_view rest = std::string_view(*text).substr(name_end + 1);
  for (int field = 3; field <= kBegan && !rest.empty(); ++field) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (field == kGroup) (void)std::from_chars(word.data(), word.data() + word.size(), facts.group);
    if (field == kBegan) (void)std::from_chars(word.data(), word.data() + word.size(), facts.began);
    rest.remove_prefix(word.size());
  }
  return facts;
}

/// That moment in ticks since the machine's start, rounded down.
std::uint64_t ticks_at(std::uint64_t microseconds) {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const std::uint64_t now_microseconds = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
                                         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
  const std::uint64_t ago = sys::now_microseconds() - microseconds;
  return (now_microseconds - ago) * static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)) / 1'000'000;
}

}  // namespace

void kill_foreground(pid_t init, std::uint64_t since_microseconds) {
  ProcessList processes(init, -1);
  processes.refresh();
  pid_t main = 0;  // the first child of init; it may have adopted others
  for (const ProcessList::Process& each : processes.all())
    if (each.parent == init && (main == 0 || each.number < main)) main = each.number;
  const std::uint64_t since = ticks_at(since_microseconds);
  for (const ProcessList::Process& each : processes.all()) {
    if (each.number == main) continue;
    // Held before it is looked at: the number can't be another process's by then.
    const UniqueFd process = process::open(each.number);
    const auto facts = facts_of(each.number);
    if (!process.valid() || !facts || facts->group != main || facts->began < since) continue;
    process::kill(process.get());
  }
}

}  // namespace sbx::supervise
