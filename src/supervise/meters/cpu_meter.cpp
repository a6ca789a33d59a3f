#include "supervise/meters/cpu_meter.hpp"

#include <fcntl.h>

#include <algorithm>

#include "supervise/meters/process_times.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {

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
  // Reads the reaped times of all processes first, so that a child reaped meanwhile is not counted
  // twice.
  for (const Fields fields : {Fields::reaped, Fields::own}) {
    add_times(processes_.proc(), processes_.directory_of_pid1(), fields, sum);
    for (const ProcessList::Process& process : processes_.all())
      add_times(processes_.proc(), process.directory, fields, sum);
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
