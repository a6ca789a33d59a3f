#include "cli/completions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "policy/load.hpp"

/// After the first operand of `run` the rest belongs to another command: each script hands over to
/// that command's own completion there.
namespace sbx::cli {
namespace {

constexpr std::string_view kGenerated =
    "made by sbx-docs from the command line's own tree; not edited by hand";

std::string policy_names() {
  std::string names;
  for (const policy::Builtin& builtin : policy::builtins()) {
    if (!names.empty()) names += ' ';
    names += builtin.name;
  }
  return names;
}

std::vector<std::string> words_of(const OptionDoc& option) {
  if (!option.choices.empty()) return option.choices;
  if (option.value == "inherit|null|FILE") return {"inherit", "null"};
  return {};
}

bool takes_file(const OptionDoc& option) {
  return option.value.find("FILE") != std::string::npos ||
         option.value.find("PATH") != std::string::npos ||
         option.value.find("DIR") != std::string::npos || option.value == "POLICY";
}

std::string all_names(const OptionDoc& option, std::string_view divider) {
  std::string names = option.short_name;
  if (!option.short_name.empty() && !option.long_name.empty()) names += divider;
  return names + option.long_name;
}

/// Second words of "policy list", "policy show".
std::string policy_commands(const std::vector<CommandDoc>& tree) {
  std::string words;
  for (const CommandDoc& command : tree)
    if (command.works && command.name.starts_with("policy "))
      words += (words.empty() ? "" : " ") + command.name.substr(7);
  return words;
}

std::string top_commands(const std::vector<CommandDoc>& tree) {
  std::string words;
  bool has_policy = false;
  for (const CommandDoc& command : tree) {
    if (!command.works || command.name.empty()) continue;
    const bool below_policy = command.name.starts_with("policy ");
    if (below_policy && has_policy) continue;
    has_policy = has_policy || below_policy;
    words += (words.empty() ? "" : " ") + (below_policy ? std::string("policy") : command.name);
  }
  return words;
}

const CommandDoc& run_of(const std::vector<CommandDoc>& tree) {
  return *std::find_if(tree.begin(), tree.end(),
                       [](const CommandDoc& command) { return command.name == "run"; });
}

// --- bash

std::string bash_values(const CommandDoc& run) {
  std::string cases;
  for (const OptionDoc& option : run.options) {
    if (option.value.empty() || option.value.starts_with('[')) continue;
    const auto words = words_of(option);
    std::string action;
    if (option.value == "POLICY")
      action = "COMPREPLY=($(compgen -W \"$policies\" -- \"$cur\") $(compgen -f -- \"$cur\"))";
    else if (!words.empty())
      action = fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))", fmt::join(words, " "));
    else if (takes_file(option))
      action = "COMPREPLY=($(compgen -f -- \"$cur\"))";
    else
      action = "COMPREPLY=()";
    cases += fmt::format("        {}) {} ;;\n", all_names(option, "|"), action);
  }
  return cases;
}

std::string names_line(const CommandDoc& command) {
  std::string names;
  for (const OptionDoc& option : command.options)
    names += (names.empty() ? "" : " ") + all_names(option, " ");
  return names;
}

std::string with_value_pattern(const CommandDoc& run) {
  std::string pattern;
  for (const OptionDoc& option : run.options)
    if (!option.value.empty() && !option.value.starts_with('['))
      pattern += (pattern.empty() ? "" : "|") + all_names(option, "|");
  return pattern;
}

std::string bash_script(const std::vector<CommandDoc>& tree) {
  const CommandDoc& run = run_of(tree);
  std::string text = fmt::format("# bash completion for sbx; {}\n\n", kGenerated);
  text += "_sbx_run() {\n    local i=2 word policies=\"" + policy_names() + "\"\n";
  text +=
      "    while ((i < COMP_CWORD)); do\n        word=${COMP_WORDS[i]}\n        case $word in\n";
  text += "        --) _sbx_command $((i + 1)); return ;;\n";
  text += fmt::format("        {}) ((i += 2)); continue ;;\n", with_value_pattern(run));
  text +=
      "        -?*) ((i += 1)); continue ;;\n        *) _sbx_command $i; return ;;\n        esac\n "
      "   done\n";
  text += "    case $prev in\n" + bash_values(run);
  text +=
      "        *)\n            if [[ $cur == -* ]]; then\n                COMPREPLY=($(compgen -W "
      "\"" +
      names_line(run) +
      "\" -- \"$cur\"))\n            else\n                COMPREPLY=($(compgen -c -- \"$cur\") "
      "$(compgen -f -- "
      "\"$cur\"))\n            fi\n            ;;\n    esac\n}\n\n";
  text +=
      "# The words from index $1 on are a command line of their own.\n"
      "_sbx_command() {\n    if declare -F _command_offset >/dev/null && (($1 < COMP_CWORD)); "
      "then\n"
      "        _command_offset \"$1\"\n    else\n        COMPREPLY=($(compgen -c -- \"$cur\") "
      "$(compgen -f -- \"$cur\"))\n"
      "    fi\n}\n\n";
  text +=
      "_sbx() {\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n    "
      "COMPREPLY=()\n";
  text += fmt::format(
      "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W \"{} --help --version\" "
      "-- "
      "\"$cur\"))\n        return\n    fi\n",
      top_commands(tree));
  text +=
      "    case ${COMP_WORDS[1]} in\n    run) _sbx_run ;;\n    policy)\n        if ((COMP_CWORD == "
      "2)); then\n";
  text += fmt::format("            COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n        else\n",
                      policy_commands(tree));
  text += fmt::format(
      "            COMPREPLY=($(compgen -W \"{} --effective --help\" -- \"$cur\") $(compgen -f -- "
      "\"$cur\"))\n        fi\n        ;;\n",
      policy_names());
  text += "    completions) COMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$cur\")) ;;\n";
  text += fmt::format("    help) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n    esac\n}}\n\n",
                      top_commands(tree));
  return text + "complete -o filenames -F _sbx sbx\n";
}

// --- zsh

std::string zsh_quoted(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

/// The first sentence of an option's text.
std::string_view summary(const OptionDoc& option) {
  const std::string_view text = option.text;
  return text.substr(0, text.find(". "));
}

std::string zsh_action(const OptionDoc& option) {
  if (option.value == "POLICY") return ":policy:_sbx_policies";
  const auto words = words_of(option);
  if (!words.empty()) return fmt::format(":value:({})", fmt::join(words, " "));
  if (option.value.find("DIR") != std::string::npos) return ":folder:_files -/";
  if (takes_file(option)) return ":file:_files";
  return ":value: ";
}

std::string zsh_option(const OptionDoc& option) {
  const std::string text = zsh_quoted(summary(option));
  std::string lines;
  for (const std::string& name : {option.short_name, option.long_name}) {
    if (name.empty()) continue;
    const bool optional = option.value.starts_with('[');
    const std::string argument = option.value.empty() ? "" : optional ? ":: :" : zsh_action(option);
    const bool equals = !option.value.empty() && name.starts_with("--");
    lines += fmt::format("    '*{}{}[{}]{}' \\\n", name, equals ? (optional ? "=-" : "=") : "",
                         text, argument);
  }
  return lines;
}

std::string zsh_script(const std::vector<CommandDoc>& tree) {
  std::string text = fmt::format("#compdef sbx\n# zsh completion for sbx; {}\n\n", kGenerated);
  text += fmt::format(
      "_sbx_policies() {{\n  _alternative 'names:policy:({})' 'files:policy file:_files'\n}}\n\n",
      policy_names());
  text += "_sbx_run() {\n  _arguments -S \\\n";
  for (const OptionDoc& option : run_of(tree).options) text += zsh_option(option);
  text +=
      "    '(-)1:script or command:{_alternative \"commands:command:_command_names -e\" "
      "\"files:script:_files\"}' \\\n"
      "    '*::arguments:_normal'\n}\n\n";
  text += "_sbx() {\n  if ((CURRENT == 2)); then\n";
  text += fmt::format("    compadd -- {} --help --version\n    return\n  fi\n", top_commands(tree));
  text +=
      "  case $words[2] in\n    run) shift words; ((CURRENT--)); _sbx_run ;;\n    policy)\n      "
      "if ((CURRENT == 3)); then\n";
  text +=
      fmt::format("        compadd -- {}\n      else\n        _sbx_policies\n      fi\n      ;;\n",
                  policy_commands(tree));
  text += "    completions) compadd -- bash zsh fish ;;\n";
  text += fmt::format("    help) compadd -- {} ;;\n  esac\n}}\n\n", top_commands(tree));
  return text + "_sbx \"$@\"\n";
}

// --- fish

std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_option(const OptionDoc& option) {
  std::string line = "complete -c sbx -n __sbx_run_options";
  if (!option.short_name.empty()) line += " -s " + option.short_name.substr(1);
  if (!option.long_name.empty()) line += " -l " + option.long_name.substr(2);
  const auto words = words_of(option);
  if (option.value == "POLICY")
    line += fmt::format(" -r -a {}", fish_quoted(policy_names()));
  else if (!words.empty())
    line += fmt::format(" {} -a {}", takes_file(option) ? "-r" : "-x",
                        fish_quoted(fmt::format("{}", fmt::join(words, " "))));
  else if (!option.value.empty() && !option.value.starts_with('['))
    line += takes_file(option) ? " -r" : " -x";
  return line + " -d " + fish_quoted(summary(option)) + "\n";
}

std::string fish_script(const std::vector<CommandDoc>& tree) {
  const CommandDoc& run = run_of(tree);
  std::string with_value;
  for (const OptionDoc& option : run.options)
    if (!option.value.empty() && !option.value.starts_with('['))
      with_value += " " + all_names(option, " ");
  std::string text = fmt::format("# fish completion for sbx; {}\n\n", kGenerated);
  text +=
      "# Prints the index of the first operand of \"sbx run\"; fails while there is none.\n"
      "function __sbx_operand\n    set -l words (commandline -opc)\n    test \"$words[2]\" = run; "
      "or return 1\n"
      "    set -l i 3\n    while test $i -le (count $words)\n        switch $words[$i]\n           "
      " case --\n"
      "                echo (math $i + 1)\n                return 0\n";
  text += fmt::format("            case{}\n                set i (math $i + 2)\n", with_value);
  text +=
      "            case '-*'\n                set i (math $i + 1)\n            case '*'\n          "
      "      echo $i\n"
      "                return 0\n        end\n    end\n    return 1\nend\n\n"
      "function __sbx_run_options\n    __fish_seen_subcommand_from run; and not __sbx_operand "
      ">/dev/null\nend\n\n"
      "function __sbx_run_command\n    __sbx_operand >/dev/null\nend\n\n"
      "function __sbx_complete_command\n    set -l words (commandline -opc) (commandline -ct)\n"
      "    set -l first (__sbx_operand); or return\n    complete -C (string join ' ' -- "
      "$words[$first..-1])\nend\n\n";
  text += "complete -c sbx -f\n";
  for (const CommandDoc& command : tree)
    if (command.works && !command.name.empty() && command.name.find(' ') == std::string::npos)
      text += fmt::format("complete -c sbx -n __fish_use_subcommand -a {} -d {}\n", command.name,
                          fish_quoted(command.text));
  text += "complete -c sbx -n __fish_use_subcommand -a policy -d 'Look at policies.'\n";
  text += fmt::format("complete -c sbx -n '__fish_seen_subcommand_from policy' -a {}\n",
                      fish_quoted(policy_commands(tree)));
  text += fmt::format("complete -c sbx -n '__fish_seen_subcommand_from show check' -F -a {}\n",
                      fish_quoted(policy_names()));
  text += "complete -c sbx -n '__fish_seen_subcommand_from completions' -a 'bash zsh fish'\n";
  text += "complete -c sbx -n __sbx_run_options -F -a '(__fish_complete_command)'\n";
  text += "complete -c sbx -n __sbx_run_command -F -a '(__sbx_complete_command)'\n";
  for (const OptionDoc& option : run.options) text += fish_option(option);
  return text;
}

}  // namespace

std::string completion_script(const std::vector<CommandDoc>& tree, std::string_view shell) {
  if (shell == "bash") return bash_script(tree);
  if (shell == "zsh") return zsh_script(tree);
  if (shell == "fish") return fish_script(tree);
  return {};
}

}  // namespace sbx::cli
