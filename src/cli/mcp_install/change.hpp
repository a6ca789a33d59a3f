#pragma once

#include <string>
#include <vector>

#include "cli/mcp_install/registration.hpp"
#include "cli/mcp_install/target.hpp"

namespace sbx::cli::mcp_install {

/// A settings file, held, and what it shall say.
struct Edit {
  File file;
  Target target;
  std::string text;

  [[nodiscard]] bool changes() const { return text != target.text(); }
};

/// Reads every file and makes every text before anything is written. Errors: those of Target and
/// changed_text(); they name the file.
[[nodiscard]] Result<std::vector<Edit>> edits_of(const Client& client,
                                                 const std::vector<File>& files,
                                                 const Registration& wanted, Change change);
/// In order. Errors: those of Target::replace().
[[nodiscard]] Status write_all(std::vector<Edit>& edits);

}  // namespace sbx::cli::mcp_install
