#include "cli/completions/completions.hpp"

#include <cctype>

namespace sbx::cli {
namespace {

constexpr std::string_view kBash = R"sh(# bash completion for sbx
# The program itself says what fits.
_sbx() {
    local how word cur=${COMP_WORDS[COMP_CWORD]} IFS=$'\n'
    COMPREPLY=()
    [[ $cur == = ]] && cur=
    {
        read -r how
        while IFS=$'\t' read -r word _; do
            printf -v word %q "$word"
            COMPREPLY+=("$word")
        done
    } < <(sbx __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case $how in
    nospace) compopt -o nospace 2>/dev/null ;;
    files) COMPREPLY+=($(compgen -f -- "$cur")) && compopt -o filenames 2>/dev/null ;;
    directories) COMPREPLY+=($(compgen -d -- "$cur")) && compopt -o filenames 2>/dev/null ;;
    program*)
        how=${how#program }
        if declare -F _command_offset >/dev/null && ((how < COMP_CWORD)); then
            unset IFS && _command_offset "$how"
        else
            COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
            compopt -o filenames 2>/dev/null
        fi
        ;;
    esac
}

complete -F _sbx sbx
)sh";

constexpr std::string_view kZsh = R"sh(#compdef sbx
# zsh completion for sbx
# The program itself says what fits.

local how each
local -a lines names texts
lines=("${(@f)$(sbx __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
how=$lines[1]
for each in "${(@)lines[2,-1]}"; do
  names+=("${each%%$'\t'*}")
  texts+=("${${each/$'\t'/  -- }%  -- }")
done
if [[ $how == nospace ]]; then
  compadd -S '' -l -d texts -a names
elif (( $#names )); then
  compadd -l -d texts -a names
fi
case $how in
  files) _files ;;
  directories) _files -/ ;;
  program*)
    how=${how#program }
    words=("${(@)words[how+1,-1]}")
    (( CURRENT -= how ))
    if (( CURRENT == 1 )); then
      _alternative 'commands:command:_command_names -e' 'files:script:_files'
    else
      _normal
    fi
    ;;
esac
)sh";

constexpr std::string_view kFish = R"sh(# fish completion for sbx
# The program itself says what fits.
function __sbx_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (sbx __complete $words[2..-1] 2>/dev/null)
    test (count $lines) -gt 1; and printf '%s\n' $lines[2..-1]
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case directories
            __fish_complete_directories (commandline -ct)
        case 'program *'
            set -l first (math (string sub -s 9 -- $lines[1]) + 1)
            complete -C (string join ' ' -- (string escape -- $words[$first..-2]) (commandline -ct))
    end
end

complete -c sbx -f -a '(__sbx_complete)'
)sh";

}  // namespace

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return {};
}

std::string for_program(std::string_view script, std::string_view program) {
  constexpr std::string_view kName = "sbx";
  if (program == kName) return std::string(script);
  std::string identifier(program);
  for (char& c : identifier)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  std::string text;
  for (auto at = script.find(kName); at != std::string_view::npos; at = script.find(kName)) {
    const char before = at == 0 ? '\n' : script[at - 1];
    const std::string_view rest = script.substr(at + kName.size());
    const bool is_word = std::string_view(" (\"\n").contains(before) &&
                         (rest.starts_with(' ') || rest.starts_with('\n'));
    text += script.substr(0, at);
    text += before == '_' ? std::string_view(identifier) : is_word ? program : kName;
    script = rest;
  }
  return text.append(script);
}

}  // namespace sbx::cli
