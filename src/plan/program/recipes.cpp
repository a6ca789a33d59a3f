#include "plan/program/recipes.hpp"

#include "base/random.hpp"
#include "plan/program/build_directory.hpp"

namespace sbx::plan {
namespace {

// A name of its own for each call of a session, which share /tmp. It is hidden, because programs
// list /tmp, and not in the working directory, which is the caller's.
constexpr std::string_view kBuild = "build=/tmp/.sbx-build-";
constexpr std::string_view kAssigned = "build=";
constexpr std::string_view kTmp = "/tmp";
constexpr std::size_t kRandom = 16;  ///< letters of random_hex()
// Without -p mkdir(1) refuses a name that exists, so that no link or directory of another call is
// used.
constexpr std::string_view kBegin =
    " compiler=$1\n"
    "shift\n"
    "mkdir -m 700 \"$build\" || exit\n";

constexpr std::string_view kFromFile =
    "source=$1\n"
    "shift\n";
// Finds headers beside the program although its source is elsewhere.
constexpr std::string_view kFromArgument =
    "printf '%s\\n' \"$1\" >\"$source\" || exit\n"
    "shift\n";
constexpr std::string_view kFromInput = "cat >\"$source\" || exit\n";

constexpr std::string_view kEnd = "\nexec \"$build/program\" \"$@\"\n";

bool has_build(const std::vector<std::string>& command) {
  return command.size() >= 4 && command[1] == "-c" && command[2].starts_with(kBuild);
}

}  // namespace

std::vector<std::string> recipe_words(const Recipe& recipe, std::string_view language,
                                      const std::string& compiler, SourceFrom from, Bytes memory) {
  std::string script(kBuild);
  script += random_hex();
  script += " memory=" + std::to_string(memory.count);
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

std::string build_directory_of(const std::vector<std::string>& command) {
  if (!has_build(command)) return {};
  constexpr std::size_t kBefore = kAssigned.size() + kTmp.size() + 1;
  std::string name = command[2].substr(kBefore, kBuild.size() - kBefore + kRandom);
  return name.contains('/') ? std::string() : name;
}

void move_build_directory(std::vector<std::string>& command, const std::string& tmp) {
  if (has_build(command)) command[2].replace(kAssigned.size(), kTmp.size(), tmp);
}

}  // namespace sbx::plan
