#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sbx/outcome.hpp>

namespace sbx::record {

/// A captured stream as shown in the record: UTF-8 with a line in the gap, or base64 without one.
struct Captured {
  std::optional<std::string> text;
  bool is_base64 = false;
  std::uint64_t head_bytes = 0;
  std::uint64_t tail_bytes = 0;
};

/// Removes characters that truncation has cut in two, so that UTF-8 stays valid.
[[nodiscard]] Captured captured_text(const Stream& stream);

}  // namespace sbx::record
