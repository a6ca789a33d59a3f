#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "record/words.hpp"

namespace sbx::cli {

/// Help for one command, options by group; "" is the program itself. Empty if there is no such command.
[[nodiscard]] std::string help_text(const std::vector<CommandDoc>& tree, std::string_view command,
                                    const Paint& paint);

/// "-p, --policy POLICY", as printed in help and man page.
[[nodiscard]] std::string option_usage(const OptionDoc& option);

}  // namespace sbx::cli
