#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sbx/outcome.hpp>

namespace sbx::record {

/// A captured stream as the record shows it: UTF-8 with a line in the gap, or base64 without one.
struct Captured {
  std::optional<std::string> text;
  bool is_base64 = false;
  std::uint64_t head_bytes = 0;
  std::uint64_t tail_bytes = 0;
};

/// Where output was cut, a character cut in two is left out whole, so that UTF-8 stays UTF-8.
[[nodiscard]] Captured captured_text(const Stream& stream);

}  // namespace sbx::record
