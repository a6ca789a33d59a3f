#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The standard streams of a sandbox: pipes (or PID 1's pty), never the caller's own descriptors.
namespace sbx::supervise {

/// The supervisor's ends of the child's streams.
struct Streams {
  UniqueFd in;          ///< write end; invalid if there is nothing to relay
  UniqueFd out;         ///< read end
  UniqueFd err;         ///< read end; invalid if `out` carries both streams
  bool joined = false;  ///< `out` carries both streams
  UniqueFd in_source;   ///< --stdin FILE; invalid: the caller's fd 0
  UniqueFd in_gauge;    ///< a read end of `in`, if unread input can be given back to the caller
  /// The empty file that the child gets instead of a terminal; its access time shows whether the
  /// child read it.
  UniqueFd stdin_witness;
};

/// Both ends, before the spawn.
struct StreamPair {
  UniqueFd child_in, child_out, child_err;
  Streams supervisor;
};

enum class StdinFrom : std::uint8_t { inherit, null, file };
enum class OutputForm : std::uint8_t { passed, captured, terminal };

/// Fills closed descriptors 0 to 2 with ones that can't be read or written, so that no file opened
/// later takes their place. Call it first in a process. Errors: setup.
[[nodiscard]] Status hold_standard_descriptors();

/// Creates pipes that the uid `child_uid` can reopen through /dev/stdout (fchown needs CAP_CHOWN;
/// -1: leave). With a terminal there are no streams: the pty belongs to PID 1. If stdout and stderr
/// of the caller are the same file, one pipe carries both to preserve their order. Works with
/// closed fds 0 to 2. Errors: setup; usage, host (`stdin_file` can't be read).
[[nodiscard]] Result<StreamPair> make_streams(StdinFrom from, const std::string& stdin_file,
                                              OutputForm form, uid_t child_uid);

/// Opens what --stdin FILE names. Doesn't wait for a writer to open a FIFO: the loop waits for
/// that, so that the wall time counts. Errors: usage (a directory), host.
[[nodiscard]] Result<UniqueFd> open_source(const std::string& file);

/// True if the child read from the witness (Streams::stdin_witness).
[[nodiscard]] bool was_read(int witness);

}  // namespace sbx::supervise
