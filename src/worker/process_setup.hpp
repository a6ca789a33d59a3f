#pragma once

#include "base/argument_area.hpp"

/// What is set once for a process that becomes the supervisor of a sandbox: `sbx run` itself, or a
/// worker. Everything here holds for the whole process, so it has one place. Two settings depend on
/// the sandbox and are made with it: dumpable, which must stay set until the id maps are written
/// (spawn/spawn.cpp), and room for the descriptors of connections (run/network.cpp).
namespace sbx::worker {

/// Ignores the signals that would end the supervisor where it needs an error number: SIGPIPE (no
/// reader: EPIPE) and SIGXFSZ (a file exceeds the caller's RLIMIT_FSIZE: EFBIG). The command gets
/// the default dispositions again.
void take_errors_for_signals();

/// Raises the soft limit of open files to the hard one, but for what is reserved to measure budgets
/// (supervise/meters/reserve.hpp). Not to open more: the kernel compares the descriptors that a
/// user has in flight in unix sockets with the sender's soft limit, and a sandbox has the same
/// user. PID 1 inherits it; its program gets limits.open_files.
void raise_descriptor_limit();

/// Ensures that no descriptor sbx opens becomes 0, 1 or 2: otherwise a record could go into a
/// grant, or a message into a socket. Opens /dev/null in the wrong direction for closed ones, so
/// that their use still fails with EBADF. Returns false on failure.
[[nodiscard]] bool fill_standard_descriptors();

/// Where the arguments and the environment of this process lie: a sandbox's PID 1 wipes its copy of
/// them. `argv` is that of main().
[[nodiscard]] ArgumentArea argument_area(char** argv);

}  // namespace sbx::worker
