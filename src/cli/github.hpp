#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

/// What GitHub's runner reads out of a log: workflow commands, "::error file=...::...". A program
/// that prints such lines speaks to the runner.
namespace sbx::cli {

/// What a workflow command may carry as its message: no line of it can end the command.
[[nodiscard]] std::string github_data(std::string_view text);
/// The same for a property, where commas and colons divide.
[[nodiscard]] std::string github_property(std::string_view text);

/// While it is up, the runner takes no line for a command: "::stop-commands::TOKEN" with a token that
/// nothing inside can know.
class GithubFence {
 public:
  /// Joins stderr to stdout first: the runner reads the two apart, so that a fence on one would not
  /// hold for the other. Errors: host (no random bytes, a closed stdout).
  [[nodiscard]] static Result<GithubFence> raise();
  /// From here on lines are commands again.
  void lower();

 private:
  std::string token_;
};

}  // namespace sbx::cli
