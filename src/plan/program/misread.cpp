#include "plan/program/misread.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/text.hpp"

namespace sbx::plan {
namespace {

/// Commands of shells that no program of this name stands for.
constexpr auto kOfShells = std::to_array<std::string_view>(
    {".",     "alias",   "bg",   "cd",   "declare", "eval",  "exec",  "export",
     "fg",    "history", "jobs", "let",  "popd",    "pushd", "read",  "set",
     "shopt", "source",  "trap", "type", "ulimit",  "umask", "unset", "wait"});

/// "jupyter", and "jupyter-execute".
bool is_of_notebooks(std::string_view word) {
  return word == "papermill" || word == "nbconvert" || word.starts_with("jupyter");
}

/// "FOO=1", as in front of a command of a shell.
bool is_assignment(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  return name.size() < word.size() && is_variable_name(name);
}

std::string joined_words(std::span<const std::string> words) {
  std::string line;
  for (const std::string& each : words) line += (line.empty() ? "" : " ") + shell_word(each);
  return line;
}

std::string assignments_form(std::span<const std::string> words, const std::string& starter) {
  std::string form = starter;
  std::size_t at = 0;
  for (; at < words.size() && is_assignment(words[at]); ++at)
    form += " --env " + shell_word(words[at]);
  const std::string rest = joined_words(words.subspan(at));
  return "a variable is an option: " + form + " " + (rest.empty() ? "COMMAND" : rest);
}

std::string notebook_form(std::span<const std::string> words) {
  const auto file =
      std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".ipynb"); });
  return "sbx runs notebooks itself: sbx run -p python --out results --cells " +
         (file == words.end() ? "FILE.ipynb" : shell_word(*file));
}

std::string shell_form(std::span<const std::string> words, const std::string& starter) {
  const bool is_run = starter == "sbx run";
  const std::string& word = words.front();
  const std::string first = words.size() > 1 ? words[1] : "";
  constexpr std::string_view kActivate = "/bin/activate";
  if (word == "cd" && !first.empty())
    return "to begin there: " + starter +
           (is_run ? " --workspace " + shell_word(first) + ":overlay"
                   : " --cwd " + shell_word(first)) +
           " COMMAND";
  if (word == "export" && is_assignment(first)) return assignments_form(words.subspan(1), starter);
  if (is_run && (word == "source" || word == ".") && first.ends_with(kActivate))
    return "to use its programs: sbx run --venv " +
           shell_word(first.substr(0, first.size() - kActivate.size())) + " COMMAND";
  return "it is a word of the shell: " + starter + " -- bash -c " +
         shell_word(joined_words(words) + " && COMMAND");
}

}  // namespace

std::string meant_form(const std::vector<std::string>& words, const std::string& starter) {
  if (words.empty()) return {};
  if (is_assignment(words.front())) return assignments_form(words, starter);
  if (is_of_notebooks(words.front())) return notebook_form(words);
  if (std::ranges::find(kOfShells, words.front()) != kOfShells.end())
    return shell_form(words, starter);
  return {};
}

}  // namespace sbx::plan
