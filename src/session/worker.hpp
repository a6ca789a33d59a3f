#pragma once

#include <sys/types.h>

#include "base/unique_fd.hpp"

namespace sbx::session {

/// A process that supervises calls, or a context, as the session's process knows it, which forked
/// it.
struct Worker {
  pid_t pid = -1;
  UniqueFd process;  ///< pidfd
  UniqueFd link;     ///< link.hpp
  UniqueFd ask;
};

}  // namespace sbx::session
