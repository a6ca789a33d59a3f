#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"
#include "changes/kept.hpp"
#include "protocol/answers.hpp"
#include "workspace/apply.hpp"

namespace sbx::session {

/// What `apply` shows and applies: a change set that the session made for it, which goes with this.
class Snapshot {
 public:
  /// `made` names one. Errors: host.
  [[nodiscard]] static Result<Snapshot> of(const protocol::SnapshotAnswer& made);
  Snapshot(Snapshot&& other) noexcept
      : store_(std::move(other.store_)),
        name_(std::exchange(other.name_, {})),
        notes_store_(std::move(other.notes_store_)),
        notes_(std::move(other.notes_)) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  Snapshot& operator=(Snapshot&&) = delete;
  ~Snapshot();

  /// With its directories of the host open. Errors: usage "no-such-set", host.
  [[nodiscard]] Result<changes::Kept> load() const;
  /// A later application then takes it for the session's own work.
  void note_as_applied(const changes::Kept& kept, const workspace::Applied& applied) const;

 private:
  Snapshot(changes::Store store, std::string name, changes::Store notes_store, std::string notes)
      : store_(std::move(store)),
        name_(std::move(name)),
        notes_store_(std::move(notes_store)),
        notes_(std::move(notes)) {}
  changes::Store store_;
  std::string name_;
  changes::Store notes_store_;
  std::string notes_;
};

}  // namespace sbx::session
