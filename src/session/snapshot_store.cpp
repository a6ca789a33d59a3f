#include "session/snapshot_store.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <system_error>

#include "changes/kept.hpp"

namespace sbx::session {
namespace {

/// Whoever made it has ended, or nobody can tell.
bool is_orphaned(const std::string& snapshot) {
  pid_t maker = 0;
  const char* const end = snapshot.data() + snapshot.size();
  if (std::from_chars(snapshot.data(), end, maker).ec != std::errc{} || maker <= 0) return true;
  return ::kill(maker, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string snapshot_directory(const std::string& state_directory) {
  return state_directory.empty() ? "" : state_directory + "/applying";  // empty: there is no home
}

std::string notes_directory(const std::string& state_directory) {
  return state_directory.empty() ? "" : state_directory + "/applied";
}

std::string notes_of(pid_t session, const std::string& id) {
  return std::to_string(session) + "-" + id;
}

void sweep_snapshots(const std::string& state_directory) {
  for (const std::string& directory :
       {snapshot_directory(state_directory), notes_directory(state_directory)}) {
    const auto store = changes::Store::open(directory);
    if (!store) continue;
    const auto sets = store->list();
    if (!sets) continue;
    for (const changes::KeptFacts& each : *sets)
      if (is_orphaned(each.name)) (void)store->drop(each.name);  // one that is read stays
  }
}

void drop_notes(const std::string& state_directory, const std::string& id) {
  const auto store = changes::Store::open(notes_directory(state_directory));
  if (store) (void)store->drop(notes_of(::getpid(), id));
}

}  // namespace sbx::session
