#pragma once

#include <string>
#include <string_view>

#include "policy/problem.hpp"

namespace sbx::policy {

/// A name as it is compared and dialled: ASCII (IDNA 2008 labels as "xn--"), lower case, no
/// trailing dot; labels of 1 to 63 letters, digits, '-' and '_', at most 253 in all. Names that
/// some program would read as an address ("0x7f.1", "1.2.3") are none.
[[nodiscard]] Checked<std::string> canonical_name(std::string_view text);

}  // namespace sbx::policy
