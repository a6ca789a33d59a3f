#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/invocation.hpp"
#include "cli/words.hpp"

/// `sbx why`: what a record says, told to a person.
namespace sbx::cli {

/// The explanation of a record's text. Errors: usage ("not-a-record").
[[nodiscard]] Result<std::string> why_words(std::string_view record, const Paint& paint);

/// Gives the exit status.
int why_command(const Invocation& typed);

}  // namespace sbx::cli
