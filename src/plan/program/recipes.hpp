#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/units.hpp>

/// Languages that are compiled first: a shell script inside compiles the program and then executes
/// it.
namespace sbx::plan {

/// Where the program's source comes from.
enum class SourceFrom : std::uint8_t { file, argument, standard_input };

struct Recipe {
  std::string_view file_name;  ///< for a source without a name of its own, "code.c"
  /// Compiles "$source" with "$compiler" to "$build/program", or replaces itself. If the compiler
  /// fails, its exit status is the script's.
  std::string_view steps;
};

/// The arguments of `sh`: -c, the script, its name, the compiler. The source follows (a path, or
/// the text for SourceFrom::argument; nothing for standard input), then the program's arguments.
[[nodiscard]] std::vector<std::string> recipe_words(const Recipe& recipe, std::string_view language,
                                                    const std::string& compiler, SourceFrom from,
                                                    Bytes memory);

}  // namespace sbx::plan
