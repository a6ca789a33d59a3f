#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/program/lookup.hpp"
#include "plan/program/shim_context.hpp"

/// Common to version managers: small files choose versions, and each version has a directory.
namespace sbx::plan {

/// The chosen versions, in order, and the file that chooses them.
struct Choice {
  std::vector<std::string> versions;
  std::string where;
};

/// The parts of a text between separators, without empty ones.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text,
                                                   std::string_view separators);
/// Words of a version file; text after '#' is a comment.
[[nodiscard]] std::vector<std::string> version_words(std::string_view text);

/// A variable of the caller; empty if it is not set.
[[nodiscard]] std::string variable(const ShimContext& context, std::string_view name);

/// The path and content of the nearest file with one of these names, from the working directory
/// upwards.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> upward(const host::Files& files,
                                                                        const std::string& start,
                                                                        std::string_view name);

/// A version is a single directory name: "../.." in a file of the working directory must not lead
/// elsewhere.
[[nodiscard]] bool is_version_name(std::string_view version);

/// The directory of a version below `directory`; "3.11" means the newest 3.11.x, as in pyenv.
[[nodiscard]] std::string version_directory(const std::string& directory,
                                            const std::string& version, const host::Files& files);

/// The error for a version that lacks the program.
[[nodiscard]] std::unexpected<Error> missing_version(std::string_view manager,
                                                     std::string_view program,
                                                     const Choice& choice);

/// A line `key = value` of a TOML settings file, with the strings in its value. The tools that
/// wrote the file have validated it; values of more than one line are skipped. wrote the file have
/// checked it; whatever is more than one line is passed over.
struct Setting {
  std::string section;
  std::string key;
  std::vector<std::string> values;
};
[[nodiscard]] std::vector<Setting> settings_of(std::string_view text);

}  // namespace sbx::plan
