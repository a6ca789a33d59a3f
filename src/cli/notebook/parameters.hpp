#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "cli/notebook/notebook.hpp"

namespace sbx::cli {

/// Puts a cell that assigns the parameters after the first one tagged "parameters", or first of
/// all; it replaces one that is tagged "injected-parameters". The cells are numbered anew. A value
/// that is JSON is that value, any other is text. False: no cell is tagged "parameters". Errors:
/// usage "bad-value": a name or a value that the language has not.
[[nodiscard]] Result<bool> set_parameters(
    Notebook& notebook, const std::string& language,
    const std::vector<std::pair<std::string, std::string>>& parameters);

}  // namespace sbx::cli
