#pragma once

#include <string>
#include <string_view>

#include <sbx/session.hpp>

namespace sbx::lib {

/// Reads a record of schema "sbx.cell/1". It is untrusted input: a field that is missing or of
/// another type keeps its default.
[[nodiscard]] CellResult cell_result(std::string_view record);

/// The name in what `sbx session start --json` printed; empty if there is none.
[[nodiscard]] std::string session_name(std::string_view json);

}  // namespace sbx::lib
