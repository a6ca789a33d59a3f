#pragma once

#include <string>
#include <vector>

/// Words that stand where a command belongs and are none: a shell or a tool of notebooks has them.
namespace sbx::plan {

/// The form that does what these words mean; empty where nothing is known. `starter`: what stands
/// in front of a command, "sbx run" or "sbx session exec NAME". By their text alone.
[[nodiscard]] std::string meant_form(const std::vector<std::string>& words,
                                     const std::string& starter);

}  // namespace sbx::plan
