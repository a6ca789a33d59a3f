#include "network/tally.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace sbx::network {

Denial& Tally::entry_of(Denial denial) {
  auto found = denial_of_.find(denial.what);
  if (found == denial_of_.end() && denials_.size() >= kMostNames) {
    denial = Denial{.kind = DenialKind::network, .what = "others"};
    found = denial_of_.find(denial.what);
  }
  if (found != denial_of_.end()) return denials_[found->second];
  denial_of_.emplace(denial.what, denials_.size());
  denial.count = 0;
  denials_.push_back(std::move(denial));
  return denials_.back();
}

void Tally::announce(const Denial& entry) const {
  if (events_ != nullptr) events_->denied(entry);
}

void Tally::deny(Denial denial, std::uint64_t count) {
  if (hears_) hears_(denial, count, [] { return std::string(); });
  Denial& entry = entry_of(std::move(denial));
  if (entry.count == 0) announce(entry);
  entry.count += count;
}

void Tally::deny(Denial denial, const ProcessName& process_name, Count count) {
  const std::optional<Denial> told = hears_ ? std::optional(denial) : std::nullopt;
  Denial& entry = entry_of(std::move(denial));
  const bool counts = count == Count::each || entry.count == 0;
  if (entry.count == 0) {
    entry.process = process_name();
    announce(entry);
  }
  if (counts) ++entry.count;
  if (told) hears_(*told, counts ? 1 : 0, process_name);
}

void Tally::deny_once(Denial denial) {
  deny(std::move(denial), [] { return std::string(); }, Count::at_least_once);
}

void Tally::fail(std::string what, std::string why) {
  if (failures_.size() >= kMostNames) {
    what = "others";
    why.clear();
  }
  const auto [found, is_new] = failure_of_.emplace(what + '\0' + why, failures_.size());
  if (is_new) failures_.push_back({.what = std::move(what), .why = std::move(why), .count = 0});
  ++failures_[found->second].count;
}

Tally::UseId Tally::use(std::string_view rule) {
  const auto found = std::ranges::find(used_, rule, &NetworkUse::rule);
  if (found != used_.end()) return static_cast<UseId>(found - used_.begin());
  used_.push_back({.rule = std::string(rule)});
  return used_.size() - 1;
}

std::vector<Denial> Tally::take_denials() {
  denial_of_.clear();
  return std::exchange(denials_, {});
}

void Tally::put_into(Outcome& outcome) {
  // A session asks again and again.
  std::ranges::copy(denials_, std::back_inserter(outcome.denials));
  std::ranges::copy(failures_, std::back_inserter(outcome.network_failures));
  std::ranges::copy_if(used_, std::back_inserter(outcome.network_used),
                       [](const NetworkUse& use) { return use.connections > 0; });
}

}  // namespace sbx::network
