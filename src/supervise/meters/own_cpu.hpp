#pragma once

#include <time.h>

#include <cstdint>

namespace sbx::supervise {

/// CPU time of this thread, for what looking costs: while others run instead of it, nothing is measured.
inline std::uint64_t spent_microseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace sbx::supervise
