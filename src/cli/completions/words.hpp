#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

/// What the three completion scripts have in common: the words of the command line's own tree.
namespace sbx::cli::completion {

inline constexpr std::string_view kGenerated =
    "made by sbx-docs from the command line's own tree; not edited by hand";

/// What stands where an operand or an option's value is expected.
enum class Kind : std::uint8_t {
  none,     ///< nothing can be offered: a number, a name
  words,    ///< one of a few
  policy,   ///< a named policy or a file
  key,      ///< KEY= of --set
  name,     ///< what `policy explain` knows
  command,  ///< a command of sbx
  set,      ///< a change set that is kept
  file,
  folder,
};

[[nodiscard]] Kind kind_of(const OptionDoc& option);
[[nodiscard]] Kind operand_kind(const CommandDoc& command);
/// The words of Kind::words.
[[nodiscard]] std::vector<std::string> words_of(const OptionDoc& option);
[[nodiscard]] std::vector<std::string> operand_words(const CommandDoc& command);

[[nodiscard]] std::string policy_names();
/// Dotted keys that --set takes.
[[nodiscard]] std::string key_names();
/// Keys, sections, groups and codes.
[[nodiscard]] std::string explained_names();

/// True when the option's value is the next word.
[[nodiscard]] bool takes_next_word(const OptionDoc& option);
/// "-p|--policy".
[[nodiscard]] std::string all_names(const OptionDoc& option, std::string_view divider);
/// Names of every option of a command, divided by blanks.
[[nodiscard]] std::string option_names(const CommandDoc& command);
/// The first sentence of an option's text.
[[nodiscard]] std::string_view summary(const OptionDoc& option);

/// First words of commands, each once, in order.
[[nodiscard]] std::vector<std::string> first_words(const std::vector<CommandDoc>& tree);
/// Second words of "policy list", "policy show"; none where the first word is a command.
[[nodiscard]] std::vector<std::string> second_words(const std::vector<CommandDoc>& tree,
                                                    std::string_view first);
[[nodiscard]] const CommandDoc& run_of(const std::vector<CommandDoc>& tree);
/// Commands other than `run`, with what they say.
[[nodiscard]] std::vector<const CommandDoc*> small_commands(const std::vector<CommandDoc>& tree);
/// Options of all commands, each name once: names mean the same everywhere.
[[nodiscard]] std::vector<const OptionDoc*> all_options(const std::vector<CommandDoc>& tree);

[[nodiscard]] std::string bash_script(const std::vector<CommandDoc>& tree);
[[nodiscard]] std::string zsh_script(const std::vector<CommandDoc>& tree);
[[nodiscard]] std::string fish_script(const std::vector<CommandDoc>& tree);

}  // namespace sbx::cli::completion
