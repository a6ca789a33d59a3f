#pragma once

#include <span>
#include <string>
#include <string_view>

/// What people type out of habit with docker, E2B, Jupyter and bubblewrap, and the form that does
/// it here.
namespace sbx::cli {

/// A command line of sbx for words that name no command, such as "exec box ls"; empty if it is no
/// known habit.
[[nodiscard]] std::string command_habit(std::span<const char* const> arguments);

/// The form of "docker cp": one of two words is SESSION:PATH. Empty if neither or both are.
[[nodiscard]] std::string copy_habit(std::span<const std::string> words);

/// The form of "docker run -p 8080:80" for a value of -p; empty if it is none.
[[nodiscard]] std::string policy_habit(std::string_view value);

/// What does here what an option of another tool does there; empty if it is not a known habit.
[[nodiscard]] std::string option_habit(std::string_view command, std::string_view option);

}  // namespace sbx::cli
