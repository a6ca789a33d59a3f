#include "base/timers.hpp"

#include <vector>

namespace sbx {

Timers::Id Timers::add(std::uint64_t deadline, std::uint64_t earliest, Callback callback) {
  const Id id = ++last_;
  timers_.emplace(
      id, Timer{.deadline = deadline, .earliest = earliest, .callback = std::move(callback)});
  by_deadline_.emplace(deadline, id);
  by_earliest_.emplace(earliest, id);
  return id;
}

Timers::Callback Timers::take(Id id) {
  const auto found = timers_.find(id);
  if (found == timers_.end()) return {};
  by_deadline_.erase({found->second.deadline, id});
  by_earliest_.erase({found->second.earliest, id});
  Callback callback = std::move(found->second.callback);
  timers_.erase(found);
  return callback;
}

void Timers::cancel(Id id) {
  (void)take(id);
}

std::optional<std::uint64_t> Timers::next_deadline() const {
  if (by_deadline_.empty()) return std::nullopt;
  return by_deadline_.begin()->first;
}

void Timers::fire(std::uint64_t now) {
  std::vector<Id> due;
  for (const auto& [earliest, id] : by_earliest_) {
    if (earliest > now) break;
    due.push_back(id);
  }
  for (const Id id : due)
    if (const Callback callback = take(id)) callback();  // one before it may have cancelled it
}

}  // namespace sbx
