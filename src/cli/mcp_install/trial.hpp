#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace sbx::cli::mcp_install {

/// What a server has answered.
struct TrialAnswer {
  std::vector<std::string> tools;
  std::string first_line;  ///< of the answer to 1+1: sbx's own words
  bool is_two = false;
};

/// Starts this very program with `words`, as a client does, asks for its tools, lets it run 1+1,
/// and ends it. Its standard error is the caller's. Errors: host "no-answer".
[[nodiscard]] Result<TrialAnswer> try_server(const std::vector<std::string>& words);

}  // namespace sbx::cli::mcp_install
