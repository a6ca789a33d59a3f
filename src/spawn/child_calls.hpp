#pragma once

#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

#include "spawn/child_program.hpp"

/// Basic calls of the child. All child-safe: no allocation, no lock, no library state but errno.
namespace sbx::child {

[[noreturn]] inline void give_up(const Program& program, Stage stage, std::size_t index,
                                 int error) {
  const Progress record{stage, static_cast<std::uint16_t>(index), error};
  (void)!::write(program.channels.errors, &record, sizeof record);  // a dead parent needs no report
  ::_exit(125);
}

/// False if a test skips the stage; does not return if a test makes it fail.
[[nodiscard]] inline bool enter(const Program& program, Stage stage, std::size_t index = 0) {
#ifdef SBX_FAULTS
  if (program.fault.set && program.fault.stage == stage) {
    if (program.fault.leave_out) return false;
    give_up(program, stage, index, program.fault.error);
  }
#else
  (void)program, (void)stage, (void)index;
#endif
  return true;
}

/// The result of a system call that must succeed.
inline long must(const Program& program, Stage stage, std::size_t index, long result) {
  if (result < 0) give_up(program, stage, index, errno);
  return result;
}

template <class... Arguments>
long call(long number, Arguments... arguments) {
  return ::syscall(number, arguments...);
}

}  // namespace sbx::child
