#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/program/recipes.hpp"

namespace sbx::plan {

/// One value of --lang: how to start its programs.
struct Language {
  std::string_view name;
  /// Commands, of which the first found is used; further words are arguments ("deno run").
  std::vector<std::string_view> commands;
  /// Between interpreter and CODE of -c; empty: it has no such option.
  std::vector<std::string_view> for_code;
  std::vector<std::string_view> after_code;  ///< between CODE and the program's arguments
  /// Replaces the script when it comes from standard input.
  std::vector<std::string_view> for_stdin;
  Recipe recipe = {};  ///< of a compiled language
  /// The only command that needs the recipe; empty: all do.
  std::string_view recipe_command = {};
  bool of_project = false;  ///< The project's own commands are used first: project_program()
  /// CODE of -c that begins with `file_start`, as a file does, needs `before_file` before it.
  std::string_view file_start = {};
  std::string_view before_file = {};
};

/// Looks a language up by name or alias ("python3", "js", "golang"), ignoring case. Null if there
/// is none.
[[nodiscard]] const Language* language(std::string_view name);
/// "python, javascript, …"
[[nodiscard]] std::string language_names();
/// "did you mean python? "; empty if no name is near.
[[nodiscard]] std::string did_you_mean_language(std::string_view typed);
/// The language of "script.py" by its extension; null if none is built in.
[[nodiscard]] const Language* language_of_extension(std::string_view extension);
/// True for interpreters that need the directories around them: python3.11, node, Rscript.
[[nodiscard]] bool is_interpreter_name(std::string_view name);
/// True for python3.11 and pypy3: they look for pyvenv.cfg.
[[nodiscard]] bool is_python_name(std::string_view name);

}  // namespace sbx::plan
