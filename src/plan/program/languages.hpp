#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/program/recipes.hpp"

namespace sbx::plan {

/// One value of --lang: how its programs are started.
struct Language {
  std::string_view name;
  /// Commands, the first that is found is taken; words after the name are arguments ("deno run").
  std::vector<std::string_view> commands;
  std::vector<std::string_view>
      for_code;  ///< between interpreter and CODE of -c; empty: the interpreter has no such option
  std::vector<std::string_view> after_code;  ///< between CODE and the program's arguments
  std::vector<std::string_view>
      for_stdin;       ///< what stands for the script when it comes from standard input
  Recipe recipe = {};  ///< of a compiled language
  /// The command that needs the recipe, others understand the language; empty: every command.
  std::string_view recipe_command = {};
};

/// By its name or another that is in use ("python3", "js", "golang"), in upper or lower case. Null when
/// there is no such language.
[[nodiscard]] const Language* language(std::string_view name);
/// "python, javascript, …"
[[nodiscard]] std::string language_names();
/// The language of "script.py" by its ending; null when none is built in.
[[nodiscard]] const Language* language_of_extension(std::string_view extension);
/// True for interpreters that need the folders around them: python3.11, node, Rscript.
[[nodiscard]] bool is_interpreter_name(std::string_view name);
/// True for python3.11 and pypy3: they look for pyvenv.cfg.
[[nodiscard]] bool is_python_name(std::string_view name);

}  // namespace sbx::plan
