#include "plan/program/recipes.hpp"

namespace sbx::plan {
namespace {

// A hidden name, because programs list /tmp; not in the working directory, which is the caller's.
constexpr std::string_view kBegin =
    "build=/tmp/.sbx-build compiler=$1\n"
    "shift\n"
    "mkdir -p \"$build\" || exit\n";

constexpr std::string_view kFromFile =
    "source=$1\n"
    "shift\n";
// Finds headers beside the program although its source is elsewhere.
constexpr std::string_view kFromArgument =
    "printf '%s\\n' \"$1\" >\"$source\" || exit\n"
    "shift\n";
constexpr std::string_view kFromInput = "cat >\"$source\" || exit\n";

constexpr std::string_view kEnd = "\nexec \"$build/program\" \"$@\"\n";

}  // namespace

std::vector<std::string> recipe_words(const Recipe& recipe, std::string_view language,
                                      const std::string& compiler, SourceFrom from, Bytes memory) {
  std::string script = "memory=" + std::to_string(memory.count) + "\n";
  script += kBegin;
  if (from == SourceFrom::file) {
    script += kFromFile;
  } else {
    script.append("source=$build/").append(recipe.file_name).append(" here=.\n");
    script += from == SourceFrom::argument ? kFromArgument : kFromInput;
  }
  script += recipe.steps;
  script += kEnd;
  return {"-c", std::move(script), std::string(language), compiler};
}

}  // namespace sbx::plan
