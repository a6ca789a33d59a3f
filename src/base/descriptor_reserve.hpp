#pragma once

#include <sys/resource.h>

#include <algorithm>

namespace sbx::sys {

/// How many of `most` descriptors a supervisor keeps for measuring (supervise/meters/reserve.hpp):
/// those that ProcessList keeps open, and a few for reading.
inline rlim_t reserved_descriptors(rlim_t most) {
  return std::min<rlim_t>(most / 8, 128) + 8;
}

}  // namespace sbx::sys
