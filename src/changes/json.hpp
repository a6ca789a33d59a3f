#pragma once

#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "workspace/apply.hpp"

/// Changes as JSON: in records, and in the answers of `sbx changes`.
namespace sbx::changes {

/// "file", "directory", "link": the word for it in everything that sbx prints as JSON.
[[nodiscard]] const char* type_name(FileType type);
[[nodiscard]] Json changes_json(const std::vector<Change>& changes);
[[nodiscard]] Json left_json(const std::vector<workspace::Left>& left);
[[nodiscard]] Json applied_json(const workspace::Applied& applied);

}  // namespace sbx::changes
