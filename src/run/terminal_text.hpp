#pragma once

#include <string>
#include <string_view>

#include "supervise/streams/escape_filter.hpp"

namespace sbx::run {

/// What a program writes, piece by piece, for a terminal: escape sequences other than colours are
/// made visible. A sequence that is not complete yet is held back.
class TerminalText {
 public:
  [[nodiscard]] std::string add(std::string_view piece);
  /// What was held back.
  [[nodiscard]] std::string end();

 private:
  supervise::EscapeFilter filter_{supervise::EscapePolicy::visible};
};

/// The same for a whole text that goes to this descriptor, where that is a terminal.
[[nodiscard]] std::string made_safe(const std::string& text, int descriptor);

}  // namespace sbx::run
