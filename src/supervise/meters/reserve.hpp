#pragma once

#include <sys/resource.h>

#include <algorithm>

/// Descriptors set apart for looking at processes. What the sandbox makes the supervisor open for it,
/// a connection, a flow, must not keep it from counting: a process whose files of /proc can't be
/// opened would have no memory.
namespace sbx::supervise {

/// How many of `most` nothing else may take: what ProcessList keeps open, and a few while it reads.
inline rlim_t reserve_of(rlim_t most) {
  return std::min<rlim_t>(most / 8, 128) + 8;
}

/// While it lives, the reserve may be used: the soft limit is the hard one. Needs no privileges.
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
    if (opened_) (void)::setrlimit(RLIMIT_NOFILE, &before_);  // lower than it is: never refused
  }

 private:
  rlimit before_{};
  bool opened_ = false;
};

}  // namespace sbx::supervise
