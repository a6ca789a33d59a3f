#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/program/lookup.hpp"
#include "plan/program/shim_context.hpp"

/// What version managers have in common: versions are chosen in small files and stand in folders.
namespace sbx::plan {

/// The versions that were chosen, in order, and where that is written.
struct Choice {
  std::vector<std::string> versions;
  std::string where;
};

/// The parts of a text between separators; empty ones are left out.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text,
                                                   std::string_view separators);
/// Words of a version file; text after '#' is a comment.
[[nodiscard]] std::vector<std::string> version_words(std::string_view text);

/// A variable of the caller; empty when there is none.
[[nodiscard]] std::string variable(const ShimContext& context, std::string_view name);

/// The first file of one of these names from the working directory upwards: its path and content.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> upward(const host::Files& files,
                                                                        const std::string& start,
                                                                        std::string_view name);

/// A version is one folder name: "../.." in a file of the current folder must not lead elsewhere.
[[nodiscard]] bool is_version_name(std::string_view version);

/// The folder of a version below `folder`; "3.11" means the newest 3.11.x, as pyenv has it.
[[nodiscard]] std::string version_folder(const std::string& folder, const std::string& version,
                                         const host::Files& files);

/// The error that names a version without the program.
[[nodiscard]] std::unexpected<Error> missing_version(std::string_view manager,
                                                     std::string_view program,
                                                     const Choice& choice);

/// A line `key = value` of a settings file in TOML, with the strings in its value. The tools that
/// wrote the file have checked it; whatever is more than one line is passed over.
struct Setting {
  std::string section;
  std::string key;
  std::vector<std::string> values;
};
[[nodiscard]] std::vector<Setting> settings_of(std::string_view text);

}  // namespace sbx::plan
