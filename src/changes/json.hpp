#pragma once

#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "changes/kept_facts.hpp"
#include "workspace/apply.hpp"

/// Changes as JSON: in records, and in the answers of `sbx changes`.
namespace sbx::changes {

/// "file", "directory", "link": the word for it in everything that sbx prints as JSON.
[[nodiscard]] const char* type_name(FileType type);
[[nodiscard]] Json changes_json(const std::vector<Change>& changes);
[[nodiscard]] Json left_json(const std::vector<workspace::Left>& left);
/// `lost` of a set, and what a record says of the set that a run made.
[[nodiscard]] Json lost_json(const std::vector<LostChange>& lost);
[[nodiscard]] Json kept_json(const KeptFacts& kept);
[[nodiscard]] Json applied_json(const workspace::Applied& applied);

}  // namespace sbx::changes
