#pragma once

#include <cstdint>
#include <span>

#include "cli/options.hpp"

/// The commands as rows. cli/app builds the CLI11 tree from them.
namespace sbx::cli {

enum class Standing : std::uint8_t { works, reserved };

struct CommandRow {
  const char* name;
  const char* operands;  ///< operands for the synopsis
  const char* text;
  Standing standing;
  std::span<const OptionRow> (*options)();
};

[[nodiscard]] std::span<const CommandRow> commands();

}  // namespace sbx::cli
