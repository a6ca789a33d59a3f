#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/tell.hpp"

namespace sbx::record {

/// The allowed destinations that were not reached.
[[nodiscard]] std::string failure_words(const std::vector<NetworkFailure>& failures,
                                        const Paint& paint);

}  // namespace sbx::record
