#pragma once

#include <cstddef>
#include <string_view>

#include "base/json.hpp"

/// Reads JSON and CBOR of which the sender is not trusted: depth and number of values are bounded,
/// and the time is linear in the size. The library's own readers search each object for each new
/// name, and recurse for each level of CBOR.
namespace sbx {

struct JsonLimits {
  /// The writer of JSON recurses, and so must not get what a sender nested as deep as it likes.
  std::size_t depth = 512;
  /// Each takes many times its text in memory.
  std::size_t values = 1'000'000;
};

/// Discarded where `text` is no JSON or beyond the limits. An object may have a name twice: find()
/// finds the first.
[[nodiscard]] Json read_json(std::string_view text, JsonLimits limits = {});
/// The same for CBOR.
[[nodiscard]] Json read_cbor(std::string_view bytes, JsonLimits limits = {});

}  // namespace sbx
