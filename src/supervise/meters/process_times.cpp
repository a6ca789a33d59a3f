#include "supervise/meters/process_times.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {

void add_times(int proc, const std::string& process, Fields fields, CpuTime& sum) {
  static const auto microseconds_per_tick =
      static_cast<std::uint64_t>(1'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1L));
  std::array<char, 1024> room;
  std::string_view text = read_small(proc, process + "/stat", room);
  const auto name_end = text.rfind(')');  // the name may contain anything, even ')'
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

CpuTime reaped_children_of(pid_t process) {
  CpuTime time;
  add_times(AT_FDCWD, process_directory(process), Fields::reaped, time);
  return time;
}

}  // namespace sbx::supervise
