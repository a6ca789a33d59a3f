#include <fmt/format.h>

#include "cli/completions/completions.hpp"
#include "cli/completions/words.hpp"

namespace sbx::cli::completion {
namespace {

std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

/// Arguments of `complete` for a value or operand; `required`: -r if files may follow, else -x.
std::string fish_offer(Kind kind, const std::vector<std::string>& words, bool with_files) {
  switch (kind) {
    case Kind::none:
      return " -x";
    case Kind::words:
      return fmt::format(" {} -a {}", with_files ? "-r" : "-x",
                         fish_quoted(fmt::format("{}", fmt::join(words, " "))));
    case Kind::policy:
      return " -r -F -a '(__sbx_policies)'";
    case Kind::key:
      return " -x -a '(__sbx_keys)='";
    case Kind::name:
      return " -x -a '(__sbx_names)'";
    case Kind::command:
      return " -x -a '(__sbx_commands)'";
    case Kind::set:
      return " -x -a '(__sbx_sets)'";
    case Kind::session:
      return " -r -F -a '(__sbx_sessions)'";
    case Kind::session_name:
      return " -x -a '(__sbx_session_names)'";
    case Kind::file:
      return " -r -F";
    case Kind::folder:
      return " -x -a '(__fish_complete_directories)'";
  }
  return " -x";
}

std::string option_line(const std::string& condition, const OptionDoc& option) {
  std::string line = "complete -c sbx -n " + condition;
  if (!option.short_name.empty()) line += " -s " + option.short_name.substr(1);
  if (!option.long_name.empty()) line += " -l " + option.long_name.substr(2);
  if (takes_next_word(option))
    line += fish_offer(kind_of(option), words_of(option),
                       option.value.find("FILE") != std::string::npos);
  return line + " -d " + fish_quoted(summary(option)) + "\n";
}

/// All lines for one small command, conditional on that command.
std::string small_lines(const CommandDoc& command) {
  const std::string condition = fish_quoted("__sbx_is " + command.name);
  std::string text;
  for (const OptionDoc& option : command.options) text += option_line(condition, option);
  const Kind kind = operand_kind(command);
  if (kind == Kind::none) return text;
  std::string operands = fish_offer(kind, operand_words(command), false);
  // -r and -x concern an option's value; for an operand only -a and -F apply.
  operands = operands.substr(operands.find(" -", 2) == std::string::npos ? operands.size()
                                                                         : operands.find(" -", 2));
  if (kind == Kind::file) operands = " -F";
  return text + "complete -c sbx -n " + condition + operands + "\n";
}

constexpr std::string_view kFunctions = R"(
# Prints the index of the first operand of "sbx run"; fails while there is none.
function __sbx_operand
    set -l words (commandline -opc)
    test "$words[2]" = run; or return 1
    set -l i 3
    while test $i -le (count $words)
        switch $words[$i]
            case --
                echo (math $i + 1)
                return 0
            case{}
                set i (math $i + 2)
            case '-*'
                set i (math $i + 1)
            case '*'
                echo $i
                return 0
        end
    end
    return 1
end

function __sbx_run_options
    __sbx_is run; and not __sbx_operand >/dev/null
end

function __sbx_run_command
    __sbx_operand >/dev/null
end

function __sbx_complete_command
    set -l words (commandline -opc) (commandline -ct)
    set -l first (__sbx_operand); or return
    complete -C (string join ' ' -- $words[$first..-1])
end

# True when the words after the program's name begin with these.
function __sbx_is
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end

# True when these are the only words before the cursor.
function __sbx_after
    set -l words (commandline -opc)
    test (count $words) -eq (math (count $argv) + 1); and begin
        test (count $argv) -eq 0; or __sbx_is $argv
    end
end

# Built-in policies, and those of the machine and the user.
function __sbx_policies
    printf '%s\n' {}
    set -l config $XDG_CONFIG_HOME
    test -n "$config"; or set config $HOME/.config
    for file in /etc/sbx/policies/*.toml $config/sbx/policies/*.toml
        string replace -r '.*/(.*)\.toml$' '$1' -- $file
    end
end

function __sbx_keys
    printf '%s\n' {}
end

function __sbx_names
    printf '%s\n' {}
end

function __sbx_commands
    printf '%s\n' {}
end

# Change sets that are kept: the first column below the head.
function __sbx_sets
    sbx changes list 2>/dev/null | sed '1d;s/ .*//'
end

function __sbx_session_names
    sbx session list 2>/dev/null | awk 'NR > 1 { print $1 }'
end

# The operands of a command of sessions.
function __sbx_session_operands
    set -l words (commandline -opc)
    set -l i 4
    while test $i -le (count $words)
        switch $words[$i]
            case{}
                set i (math $i + 1)
            case '-*'
            case '*'
                echo $words[$i]
        end
        set i (math $i + 1)
    end
end

# Sessions that live; after one: its calls or contexts.
function __sbx_sessions
    set -l words (commandline -opc)
    set -l operands (__sbx_session_operands)
    switch $words[3]:(count $operands)
        case '*:0' 'stop:*'
            __sbx_session_names
        case logs:1 wait:1 kill:1
            sbx session calls $operands[1] 2>/dev/null | awk 'NR > 1 { print $1 }'
        case kill:2
            string split ' ' '{}'
        case interrupt:1 restart:1
            sbx session contexts $operands[1] 2>/dev/null | awk 'NR > 1 { print $1 }'
    end
end

complete -c sbx -f
)";

std::string filled_functions(const std::vector<CommandDoc>& tree) {
  std::string with_value;
  for (const OptionDoc& option : run_of(tree).options)
    if (takes_next_word(option)) with_value += " " + all_names(option, " ");
  const std::string parts[] = {with_value,
                               policy_names(),
                               key_names(),
                               explained_names(),
                               fmt::format("{}", fmt::join(first_words(tree), " ")),
                               " " + value_options(tree, " "),
                               std::string(kSignals)};
  std::string text;
  std::string_view rest = kFunctions;
  for (const std::string& part : parts) {
    const auto hole = rest.find("{}");
    text += std::string(rest.substr(0, hole)) + part;
    rest.remove_prefix(hole + 2);
  }
  return text + std::string(rest);
}

/// The description of a first word that has second words.
std::string description(const std::vector<CommandDoc>& tree, const std::string& word) {
  for (const CommandDoc& command : tree)
    if (command.name == word) return command.text;
  return fmt::format("Commands: {}.", fmt::join(second_words(tree, word), ", "));
}

}  // namespace

std::string fish_script(const std::vector<CommandDoc>& tree) {
  std::string text = fmt::format("# fish completion for sbx; {}\n", kGenerated);
  text += filled_functions(tree);
  for (const std::string& word : first_words(tree)) {
    text += fmt::format("complete -c sbx -n __sbx_after -a {} -d {}\n", word,
                        fish_quoted(description(tree, word)));
    for (const std::string& second : second_words(tree, word))
      for (const CommandDoc& command : tree)
        if (command.name == word + " " + second)
          text += fmt::format("complete -c sbx -n '__sbx_after {}' -a {} -d {}\n", word, second,
                              fish_quoted(command.text));
  }
  for (const CommandDoc* command : small_commands(tree)) text += small_lines(*command);
  text += "complete -c sbx -n __sbx_run_options -F -a '(__fish_complete_command)'\n";
  text += "complete -c sbx -n __sbx_run_command -F -a '(__sbx_complete_command)'\n";
  for (const OptionDoc& option : run_of(tree).options)
    text += option_line("__sbx_run_options", option);
  return text;
}

}  // namespace sbx::cli::completion
