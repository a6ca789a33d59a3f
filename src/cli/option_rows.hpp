#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "cli/options.hpp"

/// What the lists of options of several commands are made of.
namespace sbx::cli {

using Rows = std::vector<OptionRow>;

/// The one group of options of small commands.
inline constexpr const char* kOptions = "Options";

/// A row of `run` that another command shares.
[[nodiscard]] OptionRow of_run(std::string_view name);
[[nodiscard]] Rows rows_of_run(std::initializer_list<const char*> names);
/// The same, in the single option group of small commands.
[[nodiscard]] OptionRow shared(std::string_view name, const char* text = nullptr);
[[nodiscard]] OptionRow dies_with_parent(const char* text);
/// --env of what runs in a session, which has its variables of the caller since its start.
[[nodiscard]] OptionRow env_of_session(OptionRow row, const char* text);
[[nodiscard]] Rows with_usual(Rows rows);

}  // namespace sbx::cli
