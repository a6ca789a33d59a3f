#include "changes/facts.hpp"

namespace sbx::changes {

std::vector<protocol::LeftFacts> left_facts(const std::vector<workspace::Left>& left) {
  std::vector<protocol::LeftFacts> facts;
  facts.reserve(left.size());
  for (const workspace::Left& each : left) facts.push_back({.path = each.path, .why = each.why});
  return facts;
}

std::vector<protocol::LeftFacts> left_facts(const std::vector<LostChange>& lost) {
  std::vector<protocol::LeftFacts> facts;
  facts.reserve(lost.size());
  for (const LostChange& each : lost) facts.push_back({.path = each.path, .why = each.why});
  return facts;
}

protocol::KeptAnswer kept_facts(const KeptFacts& kept) {
  protocol::KeptAnswer facts{.name = kept.name, .changes = kept.count, .bytes = kept.bytes};
  if (!kept.lost.empty()) facts.lost = left_facts(kept.lost);
  return facts;
}

protocol::AppliedFacts applied_facts(const workspace::Applied& applied) {
  return {.done = applied.done,
          .conflicts = left_facts(applied.conflicts),
          .left = left_facts(applied.left),
          .hazards = left_facts(applied.hazards)};
}

}  // namespace sbx::changes
