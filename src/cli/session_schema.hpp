#pragma once

#include <string>
#include <vector>

namespace sbx::cli {

/// Where this text of schema/sbx.session.1.json is not what the structs say that `sbx session`
/// prints with --json: members, which of them are always there, and their types. Descriptions,
/// patterns and bounds are the file's own.
[[nodiscard]] std::vector<std::string> faults_of_session_schema(const std::string& text);

}  // namespace sbx::cli
