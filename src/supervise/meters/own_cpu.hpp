#pragma once

#include <time.h>

#include <cstdint>

namespace sbx::supervise {

/// CPU time of this thread, to measure the cost of looking: time in which other threads run doesn't count.
inline std::uint64_t spent_microseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace sbx::supervise
