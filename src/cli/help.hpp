#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "record/words.hpp"

namespace sbx::cli {

/// Where help is shown: its colours, and the columns of a line.
struct Sheet {
  Paint paint;
  std::size_t width = 80;
};

/// Help for one command: options by group, examples, exit statuses. "" is the program itself, with
/// all commands by group; the first word of several commands lists these. Empty if there is no such
/// command.
[[nodiscard]] std::string help_text(const std::vector<CommandDoc>& tree, std::string_view command,
                                    const Sheet& sheet);

/// "-p, --policy POLICY", as printed in help and man page.
[[nodiscard]] std::string option_usage(const OptionDoc& option);

}  // namespace sbx::cli
