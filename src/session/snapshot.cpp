#include "session/snapshot.hpp"

#include "changes/applied_notes.hpp"

namespace sbx::session {

Result<Snapshot> Snapshot::of(const protocol::SnapshotAnswer& made) {
  return Snapshot(SBX_TRY(changes::Store::open_or_make(made.directory)), made.snapshot.value_or(""),
                  SBX_TRY(changes::Store::open_or_make(made.notes_directory)), made.notes);
}

Snapshot::~Snapshot() {
  if (!name_.empty()) (void)store_.drop(name_);
}

Result<changes::Kept> Snapshot::load() const {
  changes::Kept kept = SBX_TRY(store_.load(name_));
  SBX_TRY(changes::open_directories(kept));
  return kept;
}

void Snapshot::note_as_applied(const changes::Kept& kept, const workspace::Applied& applied) const {
  changes::note_as_applied(notes_store_, notes_, kept, applied.done);
}

}  // namespace sbx::session
