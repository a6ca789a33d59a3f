#pragma once

#include <sys/resource.h>

#include "base/descriptor_reserve.hpp"

/// Descriptors reserved for polling processes. What the sandbox makes the supervisor open
/// (connections, flows) must not stop it from measuring: a process whose files in /proc can't be
/// opened would seem to use no memory.
namespace sbx::supervise {

/// How many of `most` are reserved.
inline rlim_t reserve_of(rlim_t most) {
  return sys::reserved_descriptors(most);
}

/// Makes the reserve usable during its lifetime by raising the soft limit to the hard one. Needs no
/// privileges.
class Reserve {
 public:
  Reserve() {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0 || before_.rlim_cur == before_.rlim_max) return;
    const rlimit all{.rlim_cur = before_.rlim_max, .rlim_max = before_.rlim_max};
    opened_ = ::setrlimit(RLIMIT_NOFILE, &all) == 0;
  }
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  ~Reserve() {
    if (opened_) (void)::setrlimit(RLIMIT_NOFILE, &before_);  // lowering never fails
  }

 private:
  rlimit before_{};
  bool opened_ = false;
};

}  // namespace sbx::supervise
