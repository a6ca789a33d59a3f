#include "supervise/meters/cpu_meter.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

enum class Fields : int { own = 14, reaped = 16 };  // utime, stime; cutime, cstime: proc(5)

void add_times(int proc, const std::string& process, Fields fields, CpuTime& sum) {
  static const auto microseconds_per_tick =
      static_cast<std::uint64_t>(1'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1L));
  std::array<char, 1024> room;
  std::string_view text = read_small(proc, process + "/stat", room);
  const auto name_end = text.rfind(')');  // the name may hold anything, a ')' too
  if (name_end == std::string_view::npos) return;
  text.remove_prefix(name_end + 1);
  const int first = static_cast<int>(fields);
  for (int field = 3; !text.empty() && field <= first + 1; ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t ticks = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ticks);
    if (field >= first && error == std::errc{})
      (field == first ? sum.user_microseconds : sum.system_microseconds) +=
          ticks * microseconds_per_tick;
    text.remove_prefix(std::min(text.find(' '), text.size()));
  }
}

}  // namespace

CpuTime reaped_children_of(pid_t process) {
  CpuTime time;
  add_times(AT_FDCWD, process_folder(process), Fields::reaped, time);
  return time;
}

void raise_to(CpuTime& time, std::uint64_t total) {
  if (total <= time.total()) return;
  const std::uint64_t missing = total - time.total();
  const double of_system = time.total() == 0 ? 0.0
                                             : static_cast<double>(time.system_microseconds) /
                                                   static_cast<double>(time.total());
  const auto system = static_cast<std::uint64_t>(static_cast<double>(missing) * of_system);
  time.system_microseconds += system;
  time.user_microseconds += missing - system;
}

CpuTime CpuMeter::by_process() {
  processes_.refresh();
  CpuTime sum;
  // First what was waited for, everywhere: a child that is reaped meanwhile must not count twice.
  for (const Fields fields : {Fields::reaped, Fields::own}) {
    add_times(AT_FDCWD, process_folder(pid1_), fields, sum);
    for (const ProcessList::Process& process : processes_.all())
      add_times(processes_.proc(), process.folder, fields, sum);
  }
  return sum;
}

std::uint64_t CpuMeter::total() {
  most_ = std::max(most_, by_process().total());
  if (clock_.is_open()) most_ = std::max(most_, clock_.total(true));
  return most_;
}

std::uint64_t CpuMeter::total_at_end() {
  if (clock_.is_open()) most_ = std::max(most_, clock_.total(false));
  return most_;
}

}  // namespace sbx::supervise
