#pragma once

#include <sys/types.h>

#include <string>

/// Where change sets are that no other command shows: those that `apply` of a session shows and
/// applies, and notes of what it wrote.
namespace sbx::session {

/// Where snapshots are: a store of change sets that no other command shows. The client that asked
/// for one drops it; its name begins with the client's pid.
[[nodiscard]] std::string snapshot_directory(const std::string& state_directory);
/// The store of what applications wrote: a set for each session.
[[nodiscard]] std::string notes_directory(const std::string& state_directory);
/// The name of the notes about what `apply` wrote. They begin with a pid, as snapshots do.
[[nodiscard]] std::string notes_of(pid_t session, const std::string& id);
/// Drops snapshots of clients that were killed, and the notes of sessions that ended.
void sweep_snapshots(const std::string& state_directory);
/// Drops those of the session `id`, which is this process.
void drop_notes(const std::string& state_directory, const std::string& id);

}  // namespace sbx::session
