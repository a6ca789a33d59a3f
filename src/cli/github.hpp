#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

/// Workflow commands that GitHub's runner reads out of a log: "::error file=...,line=...::...". A
/// program that prints such lines could control the runner.
namespace sbx::cli {

/// Escapes the message of a workflow command, so that no line of it ends the command.
[[nodiscard]] std::string github_data(std::string_view text);
/// The same for a property, where commas and colons are separators.
[[nodiscard]] std::string github_property(std::string_view text);

/// While the fence is up, the runner ignores commands: "::stop-commands::TOKEN" with a token that
/// nothing inside can know.
class GithubFence {
 public:
  /// Joins stderr to stdout first: the runner reads the two separately, so a fence on one would not
  /// cover the other. Errors: host (no random bytes, a closed stdout).
  [[nodiscard]] static Result<GithubFence> raise();
  /// From here on the runner obeys commands again. Errors: host (stdout can't be written).
  [[nodiscard]] Status lower();

 private:
  std::string token_;
};

}  // namespace sbx::cli
