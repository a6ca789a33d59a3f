#pragma once

/// Process-wide settings of a sandbox's supervisor: `sbx run` itself, or a worker.
namespace sbx::worker {

/// Ignores the signals that would end the supervisor where it needs an error number: SIGPIPE (no reader: EPIPE) and
/// SIGXFSZ (a file exceeds the caller's RLIMIT_FSIZE: EFBIG). The command gets the default dispositions again.
void take_errors_for_signals();

/// Ensures that no descriptor sbx opens becomes 0, 1 or 2: otherwise a record could go into a grant, or a message
/// into a socket. Opens /dev/null in the wrong direction for closed ones, so that their use still fails with EBADF.
/// Returns false on failure.
[[nodiscard]] bool fill_standard_descriptors();

}  // namespace sbx::worker
