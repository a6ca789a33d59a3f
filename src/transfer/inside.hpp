#pragma once

#include <span>

/// The sandbox's end of a transfer: sbx's own binary, executed in the sandbox like any program of
/// it, with no privilege and under the policy's filter. It reads an archive from fd 0 and writes
/// frames to fd 1 (transfer/archive.hpp). It can do nothing that the programs of the sandbox can't,
/// so that nothing here must be trusted.
namespace sbx::transfer {

/// `put TARGET`: writes the archive of fd 0 to TARGET, or into it where it is a directory or ends
/// with a slash; then a fault for each failure, what was written, and `end`, on fd 1. `get
/// MAX_BYTES MAX_DEPTH PATH...`: an archive of each PATH on fd 1. Larger and deeper files are left
/// out. `ls PATH DEPTH`: the entries of a directory, or the one that a file is. `write PATH`: as
/// `put`, a stream to one file. `read OFFSET MOST PATH`: an archive of one file, or of a part of
/// it; MOST 0 is to its end. `stat PATH`: its entry. `mkdir PATH`, `mv PATH TARGET`, `rm PATH`,
/// `rm-r PATH`: `end`, after a fault where it could not be done. Paths are relative to the working
/// directory; "~" is $HOME. 0: all was done; 1: something failed.
[[nodiscard]] int inside_main(std::span<const char* const> arguments);

}  // namespace sbx::transfer
