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
  /// Operands of its own before a program's words, which are taken byte for byte; -1: it starts no
  /// program.
  int before_program = -1;
  /// The command whose options follow "--".
  const char* passes_on_to = "";
};

[[nodiscard]] std::span<const CommandRow> commands();

}  // namespace sbx::cli
