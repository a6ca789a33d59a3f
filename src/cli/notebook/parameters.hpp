#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "cli/notebook/notebook.hpp"

namespace sbx::cli {

struct ParametersSet {
  bool has_place = false;            ///< a cell is tagged "parameters" or "injected-parameters"
  std::vector<std::string> unknown;  ///< names that the cell tagged "parameters" does not mention
};

/// Puts a cell that assigns the parameters after the first one tagged "parameters", or first of
/// all; it replaces one that is tagged "injected-parameters". The cells are numbered anew. A value
/// that is JSON is that value, any other is text. Errors: usage "bad-value": a name or a value that
/// the language has not.
[[nodiscard]] Result<ParametersSet> set_parameters(
    Notebook& notebook, const std::string& language,
    const std::vector<std::pair<std::string, std::string>>& parameters);

}  // namespace sbx::cli
