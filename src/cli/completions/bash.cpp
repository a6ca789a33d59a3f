#include <fmt/format.h>

#include "cli/completions/completions.hpp"
#include "cli/completions/words.hpp"

/// After the first operand of `run` the rest belongs to another command, so that command's own completion takes over.
namespace sbx::cli::completion {
namespace {

/// The line that offers the words of a kind.
std::string bash_offer(Kind kind, const std::vector<std::string>& words) {
  switch (kind) {
    case Kind::none:
      return ":";
    case Kind::words:
      return fmt::format("_sbx_words \"{}\"", fmt::join(words, " "));
    case Kind::policy:
      return "_sbx_policies";
    case Kind::key:
      return "_sbx_keys";
    case Kind::name:
      return "_sbx_words \"$_sbx_names\"";
    case Kind::command:
      return "_sbx_words \"$_sbx_commands\"";
    case Kind::set:
      return "_sbx_sets";
    case Kind::session:
      return "_sbx_sessions";
    case Kind::session_name:
      return "_sbx_session_names";
    case Kind::file:
      return "COMPREPLY=($(compgen -f -- \"$cur\"))";
    case Kind::folder:
      return "COMPREPLY=($(compgen -d -- \"$cur\"))";
  }
  return ":";
}

constexpr std::string_view kOffers = R"sh(
_sbx_words() {
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# Built-in policies, those of the machine and the user, and files.
_sbx_policies() {
    local file names=$_sbx_builtins
    for file in /etc/sbx/policies/*.toml "${XDG_CONFIG_HOME:-$HOME/.config}"/sbx/policies/*.toml; do
        [[ -e $file ]] && file=${file##*/} && names+=" ${file%.toml}"
    done
    COMPREPLY=($(compgen -W "$names" -- "$cur") $(compgen -f -- "$cur"))
}

_sbx_keys() {
    COMPREPLY=($(compgen -S = -W "$_sbx_keys" -- "$cur"))
    compopt -o nospace 2>/dev/null
}

# Change sets that are kept: the first column below the head.
_sbx_sets() {
    local sets=$(sbx changes list 2>/dev/null | sed '1d;s/ .*//')
    _sbx_words "$sets"
}

_sbx_session_names() {
    _sbx_words "$(sbx session list 2>/dev/null | awk 'NR > 1 { print $1 }')"
}

# The words from index $1 on are a command line of their own.
_sbx_command() {
    if declare -F _command_offset >/dev/null && (($1 < COMP_CWORD)); then
        _command_offset "$1"
    else
        COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
    fi
}
)sh";

std::string sessions_function(const std::vector<CommandDoc>& tree) {
  return fmt::format(
      R"sh(# Sessions that live; after one: its calls, its contexts, a command, or files.
_sbx_sessions() {{
    local i operands=() verb=${{COMP_WORDS[2]}}
    for ((i = 3; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
        {}) ((i += 1)) ;;
        -*) ;;
        *) operands+=("${{COMP_WORDS[i]}}") && [[ $verb == exec ]] && break ;;
        esac
    done
    case $verb:${{#operands[@]}} in
    *:0 | stop:*) _sbx_session_names ;;
    exec:*) _sbx_command $((i + 1)) ;;
    logs:1 | wait:1 | kill:1)
        _sbx_words "$(sbx session calls "${{operands[0]}}" 2>/dev/null | awk 'NR > 1 {{ print $1 }}')" ;;
    kill:2) _sbx_words "{}" ;;
    interrupt:1 | restart:1)
        _sbx_words "$(sbx session contexts "${{operands[0]}}" 2>/dev/null | awk 'NR > 1 {{ print $1 }}')" ;;
    logs:* | wait:* | kill:* | interrupt:* | restart:*) ;;
    *) COMPREPLY=($(compgen -f -- "$cur")) ;;
    esac
}}

)sh",
      value_options(tree, "|"), kSignals);
}

std::string value_cases(const std::vector<CommandDoc>& tree) {
  std::string text =
      "# Offers the value of the option before the cursor; fails where that takes none.\n"
      "_sbx_value() {\n    case $prev in\n";
  for (const OptionDoc* option : all_options(tree))
    if (takes_next_word(*option))
      text += fmt::format("    {}) {} ;;\n", all_names(*option, "|"),
                          bash_offer(kind_of(*option), words_of(*option)));
  return text + "    *) return 1 ;;\n    esac\n    return 0\n}\n\n";
}

std::string bash_run_function(const CommandDoc& run) {
  std::string with_value;
  for (const OptionDoc& option : run.options)
    if (takes_next_word(option))
      with_value += (with_value.empty() ? "" : "|") + all_names(option, "|");
  std::string text = "_sbx_run() {\n    local i=2 word\n    while ((i < COMP_CWORD)); do\n";
  text += "        word=${COMP_WORDS[i]}\n        case $word in\n";
  text += "        --) _sbx_command $((i + 1)); return ;;\n";
  text += fmt::format("        {}) ((i += 2)); continue ;;\n", with_value);
  text += "        -?*) ((i += 1)); continue ;;\n        *) _sbx_command $i; return ;;\n";
  text += "        esac\n    done\n    _sbx_value && return\n    if [[ $cur == -* ]]; then\n";
  text += fmt::format("        _sbx_words \"{}\"\n", option_names(run));
  return text + "    else\n        _sbx_command $COMP_CWORD\n    fi\n}\n\n";
}

std::string other_function(const std::vector<CommandDoc>& tree) {
  std::string text =
      "# A command that is not run: $1 is its name.\n_sbx_other() {\n    local options=--help\n"
      "    _sbx_value && return\n    case $1 in\n";
  for (const CommandDoc* command : small_commands(tree))
    text += fmt::format("    '{}') options=\"{}\"; {} ;;\n", command->name, option_names(*command),
                        bash_offer(operand_kind(*command), operand_words(*command)));
  return text + "    esac\n    [[ $cur == -* ]] && _sbx_words \"$options\"\n}\n\n";
}

std::string bash_main_function(const std::vector<CommandDoc>& tree) {
  std::string text =
      "_sbx() {\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n"
      "        _sbx_words \"$_sbx_commands --help --version\"\n        return\n    fi\n"
      "    case ${COMP_WORDS[1]} in\n    run) _sbx_run ;;\n";
  for (const std::string& word : first_words(tree)) {
    const auto seconds = second_words(tree, word);
    if (seconds.empty()) continue;
    text += fmt::format(
        "    {0})\n        if ((COMP_CWORD == 2)); then _sbx_words \"{1}\"; "
        "else _sbx_other \"{0} ${{COMP_WORDS[2]}}\"; fi\n        ;;\n",
        word, fmt::join(seconds, " "));
  }
  return text + "    *) _sbx_other \"${COMP_WORDS[1]}\" ;;\n    esac\n}\n\n";
}

}  // namespace

std::string bash_script(const std::vector<CommandDoc>& tree) {
  std::string text = fmt::format("# bash completion for sbx; {}\n\n", kGenerated);
  text += fmt::format("_sbx_commands=\"{}\"\n", fmt::join(first_words(tree), " "));
  text += fmt::format("_sbx_builtins=\"{}\"\n", policy_names());
  text += fmt::format("_sbx_keys=\"{}\"\n", key_names());
  text += fmt::format("_sbx_names=\"{}\"\n", explained_names());
  text += kOffers;
  text += "\n" + sessions_function(tree) + value_cases(tree) + bash_run_function(run_of(tree)) +
          other_function(tree) + bash_main_function(tree);
  return text + "complete -o filenames -F _sbx sbx\n";
}

}  // namespace sbx::cli::completion
