#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/units.hpp>

/// Languages that are compiled first: a shell script, run inside, compiles the program and becomes
/// it.
namespace sbx::plan {

/// Where a program's text comes from.
enum class SourceFrom : std::uint8_t { file, argument, standard_input };

struct Recipe {
  std::string_view file_name;  ///< of a source that has no name of its own, "code.c"
  /// Compiles "$source" with "$compiler" to "$build/program", or replaces itself. A failed
  /// compiler's exit status is the script's.
  std::string_view steps;
};

/// What `sh` is given: -c, the script, its name, the compiler. What follows is the source (a path,
/// or the text of SourceFrom::argument; nothing for standard input) and the program's arguments.
[[nodiscard]] std::vector<std::string> recipe_words(const Recipe& recipe, std::string_view language,
                                                    const std::string& compiler, SourceFrom from,
                                                    Bytes memory);

}  // namespace sbx::plan
