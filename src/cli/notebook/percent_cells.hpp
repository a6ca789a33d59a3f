#pragma once

#include <string_view>

#include "cli/notebook/notebook.hpp"

namespace sbx::cli {

/// A script whose cells begin with lines "# %%", or "// %%" where `comment` is "//". Text follows
/// "# %% [markdown]"; tags=["raises-exception"] on such a line are those of the cell. What stands
/// before the first mark is a cell too.
[[nodiscard]] Notebook cells_of_script(std::string_view text, std::string_view comment);

}  // namespace sbx::cli
