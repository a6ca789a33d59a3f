#pragma once

#include "base/fields.hpp"
#include "plan/request.hpp"
#include "policy/context.hpp"

/// How the values that describe a program travel: as they are.
namespace sbx::policy {

SBX_FIELDS(Override, key, toml, option, append)

}  // namespace sbx::policy

namespace sbx::plan {

[[nodiscard]] constexpr const char* name_of(StdinMode mode) {
  switch (mode) {
    case StdinMode::inherit:
      return "inherit";
    case StdinMode::null:
      return "null";
    case StdinMode::file:
      return "file";
  }
  return "";
}

SBX_FIELDS(Input, source, target)
SBX_FIELDS(RunRequest, operands, hold, after_dashes, language, code, code_from_stdin, interactive,
           stdin_mode, stdin_file, environment, inputs, directory, require, explain, umask)

}  // namespace sbx::plan
