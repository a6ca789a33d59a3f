#pragma once

/// What is set once for a process that becomes the supervisor of a sandbox: `sbx run` itself, or a worker. Everything
/// here holds for the whole process, so it has one place.
namespace sbx::worker {

/// Dispositions of signals that would end the supervisor where an error number is wanted: SIGPIPE (a reader went away:
/// EPIPE) and SIGXFSZ (a file larger than the caller's RLIMIT_FSIZE: EFBIG). The command gets its defaults again.
void take_errors_for_signals();

/// A descriptor that sbx opens must never become its own 0, 1 or 2: a record would go into a grant, a message into a
/// socket. Closed ones become /dev/null in the wrong direction, so that whoever uses them gets EBADF as before. False:
/// that could not be done.
[[nodiscard]] bool fill_standard_descriptors();

}  // namespace sbx::worker
