#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/tell.hpp"

/// `sbx why`: explains a record to a person.
namespace sbx::record {

/// The explanation of a record's text. Errors: usage ("not-a-record").
[[nodiscard]] Result<std::string> why_words(std::string_view record, const Paint& paint);

}  // namespace sbx::record
