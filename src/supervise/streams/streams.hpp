#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The standard streams of a sandbox: never the caller's own descriptors, but pipes (or PID 1's
/// pty).
namespace sbx::supervise {

/// The supervisor's ends of the child's streams.
struct Streams {
  UniqueFd in;          ///< write end; invalid when there is nothing to relay
  UniqueFd out;         ///< read end
  UniqueFd err;         ///< read end; invalid where `out` carries both streams
  bool joined = false;  ///< it does
  UniqueFd in_source;   ///< --stdin FILE; invalid: the caller's fd 0
  UniqueFd
      in_gauge;  ///< a read end of `in`, when what is not taken can be given back to the caller
  /// The empty file given to the child instead of a terminal; its access time tells whether it
  /// read.
  UniqueFd stdin_witness;
};

/// Both ends, before the spawn.
struct StreamPair {
  UniqueFd child_in, child_out, child_err;
  Streams supervisor;
};

enum class StdinFrom : std::uint8_t { inherit, null, file };
enum class OutputForm : std::uint8_t { passed, captured, terminal };

/// Fills closed descriptors 0 to 2 with ones that refuse to be read or written, so that nothing
/// opened later can take their place. The first thing a process does. Errors: setup.
[[nodiscard]] Status hold_standard_descriptors();

/// Pipes, made so that the uid `child_uid` can open them again by /dev/stdout (fchown needs
/// CAP_CHOWN; -1: leave). Terminal: no streams at all, the pty is PID 1's. Where stdout and stderr of
/// the caller are one file, one pipe carries both, so that their order stays. Correct with closed fds
/// 0 to 2. Errors: setup; usage, host (`stdin_file` can't be read).
[[nodiscard]] Result<StreamPair> make_streams(StdinFrom from, const std::string& stdin_file,
                                              OutputForm form, uid_t child_uid);

/// Whether the child read from the witness (Streams::stdin_witness).
[[nodiscard]] bool was_read(int witness);

}  // namespace sbx::supervise
