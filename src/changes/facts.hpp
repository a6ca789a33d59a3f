#pragma once

#include <vector>

#include "base/json.hpp"
#include "changes/kept_facts.hpp"
#include "protocol/answers.hpp"
#include "workspace/apply.hpp"

/// What was done with changes, as records, sessions and `sbx changes` say it.
namespace sbx::changes {

[[nodiscard]] std::vector<protocol::LeftFacts> left_facts(const std::vector<workspace::Left>& left);
[[nodiscard]] std::vector<protocol::LeftFacts> left_facts(const std::vector<LostChange>& lost);
[[nodiscard]] protocol::KeptAnswer kept_facts(const KeptFacts& kept);
[[nodiscard]] protocol::AppliedFacts applied_facts(const workspace::Applied& applied);

template <class Left>
[[nodiscard]] Json left_json(const std::vector<Left>& left) {
  return write_list(left_facts(left), Form::document);
}

}  // namespace sbx::changes
