#include <fmt/format.h>

#include <algorithm>

#include "cli/completions/completions.hpp"
#include "cli/completions/words.hpp"

namespace sbx::cli::completion {
namespace {

std::string zsh_quoted(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

/// MESSAGE:ACTION of _arguments.
std::string action(Kind kind, const std::vector<std::string>& words) {
  switch (kind) {
    case Kind::none:
      return "value: ";
    case Kind::words:
      return fmt::format("value:({})", fmt::join(words, " "));
    case Kind::policy:
      return "policy:_sbx_policies";
    case Kind::key:
      return "key:_sbx_keys";
    case Kind::name:
      return "key, group or code:_sbx_names";
    case Kind::command:
      return "command:_sbx_commands";
    case Kind::set:
      return "change set:_sbx_sets";
    case Kind::session:
      return "session, call, context or file:_sbx_sessions";
    case Kind::session_name:
      return "session:_sbx_session_names";
    case Kind::file:
      return "file:_files";
    case Kind::folder:
      return "folder:_files -/";
  }
  return "value: ";
}

std::string option_lines(const OptionDoc& option) {
  std::string lines;
  for (const std::string& name : {option.short_name, option.long_name}) {
    if (name.empty()) continue;
    const bool optional = option.value.starts_with('[');
    const bool equals = !option.value.empty() && name.starts_with("--");
    std::string value;
    if (optional)
      value = ":: :";
    else if (!option.value.empty())
      value = ":" + action(kind_of(option), words_of(option));
    lines += fmt::format("    '*{}{}[{}]{}' \\\n", name, equals ? (optional ? "=-" : "=") : "",
                         zsh_quoted(summary(option)), value);
  }
  return lines;
}

std::string function_name(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return "_sbx_do_" + name;
}

std::string small_function(const CommandDoc& command) {
  std::string text = function_name(command.name) + "() {\n  _arguments -S \\\n";
  for (const OptionDoc& option : command.options) text += option_lines(option);
  const Kind kind = operand_kind(command);
  text += kind == Kind::none ? "    && return 0\n"
                             : fmt::format("    '*:{}'\n", action(kind, operand_words(command)));
  return text + "}\n\n";
}

std::string zsh_run_function(const CommandDoc& run) {
  std::string text = "_sbx_do_run() {\n  _arguments -S \\\n";
  for (const OptionDoc& option : run.options) text += option_lines(option);
  return text +
         "    '(-)1:script or command:{_alternative \"commands:command:_command_names -e\" "
         "\"files:script:_files\"}' \\\n    '*::arguments:_normal'\n}\n\n";
}

std::string sessions_functions(const std::vector<CommandDoc>& tree) {
  return fmt::format(R"sh(_sbx_session_names() {{
  compadd -- ${{(f)"$(sbx session list 2>/dev/null | awk 'NR > 1 {{ print $1 }}')"}}
}}

_sbx_sessions() {{
  local i verb=$words[1]
  local -a operands
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in
      ({}) ((i += 1)) ;;
      (-*) ;;
      (*) operands+=($words[i]) ;;
    esac
  done
  case $verb:$#operands in
    (*:0|stop:*) _sbx_session_names ;;
    (logs:1|wait:1|kill:1)
      compadd -- ${{(f)"$(sbx session calls $operands[1] 2>/dev/null | awk 'NR > 1 {{ print $1 }}')"}} ;;
    (kill:2) compadd -- {} ;;
    (interrupt:1|restart:1)
      compadd -- ${{(f)"$(sbx session contexts $operands[1] 2>/dev/null | awk 'NR > 1 {{ print $1 }}')"}} ;;
    (logs:*|wait:*|kill:*|interrupt:*|restart:*) ;;
    (*) _files ;;
  esac
}}

)sh",
                     value_options(tree, "|"), kSignals);
}

std::string zsh_main_function(const std::vector<CommandDoc>& tree) {
  std::string text =
      "_sbx() {\n  if ((CURRENT == 2)); then\n"
      "    compadd -- $_sbx_commands_list --help --version\n    return\n  fi\n"
      "  local verb=$words[2]\n";
  for (const std::string& word : first_words(tree)) {
    const auto seconds = second_words(tree, word);
    if (seconds.empty()) continue;
    text += fmt::format(
        "  if [[ $verb == {} ]]; then\n    if ((CURRENT == 3)); then\n      compadd -- {}\n"
        "      return\n    fi\n    verb+=_$words[3]\n    shift words\n    ((CURRENT--))\n  fi\n",
        word, fmt::join(seconds, " "));
  }
  return text +
         "  shift words\n  ((CURRENT--))\n"
         "  (( $+functions[_sbx_do_$verb] )) && _sbx_do_$verb\n}\n\n";
}

}  // namespace

std::string zsh_script(const std::vector<CommandDoc>& tree) {
  std::string text = fmt::format("#compdef sbx\n# zsh completion for sbx; {}\n\n", kGenerated);
  text += fmt::format("_sbx_commands_list=({})\n\n", fmt::join(first_words(tree), " "));
  text += fmt::format(
      "_sbx_policies() {{\n  local -a names\n  names=({}\n"
      "    /etc/sbx/policies/*.toml(N:t:r) "
      "${{XDG_CONFIG_HOME:-$HOME/.config}}/sbx/policies/*.toml(N:t:r))\n"
      "  _alternative 'names:policy:compadd -a names' 'files:policy file:_files'\n}}\n\n",
      policy_names());
  text += fmt::format("_sbx_keys() {{\n  compadd -S = -- {}\n}}\n\n", key_names());
  text += fmt::format("_sbx_names() {{\n  compadd -- {}\n}}\n\n", explained_names());
  text +=
      "_sbx_sets() {\n  compadd -- ${(f)\"$(sbx changes list 2>/dev/null | sed '1d;s/ .*//')\"}\n"
      "}\n\n";
  text += sessions_functions(tree);
  text += "_sbx_commands() {\n  compadd -- $_sbx_commands_list\n}\n\n";
  text += zsh_run_function(run_of(tree));
  for (const CommandDoc* command : small_commands(tree)) text += small_function(*command);
  return text + zsh_main_function(tree) + "_sbx \"$@\"\n";
}

}  // namespace sbx::cli::completion
