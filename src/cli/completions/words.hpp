#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

/// Shared by the three completion scripts: the words of the command tree.
namespace sbx::cli::completion {

inline constexpr std::string_view kGenerated =
    "made by sbx-docs from the command line's own tree; not edited by hand";

/// What to offer for an operand or an option's value.
enum class Kind : std::uint8_t {
  none,     ///< nothing: a number, a name
  words,    ///< one of a few words
  policy,   ///< a named policy or a file
  key,      ///< a KEY= for --set
  name,     ///< a NAME for `policy explain`
  command,  ///< a command of sbx
  set,      ///< a kept change set
  session,  ///< a session, then its calls, contexts or files
  session_name,
  file,
  folder,
};

[[nodiscard]] Kind kind_of(const OptionDoc& option);
[[nodiscard]] Kind operand_kind(const CommandDoc& command);
/// The words of Kind::words.
[[nodiscard]] std::vector<std::string> words_of(const OptionDoc& option);
[[nodiscard]] std::vector<std::string> operand_words(const CommandDoc& command);

[[nodiscard]] std::string policy_names();
/// Dotted keys for --set.
[[nodiscard]] std::string key_names();
/// Keys, sections, groups and codes.
[[nodiscard]] std::string explained_names();

/// True if the option's value is the next word.
[[nodiscard]] bool takes_next_word(const OptionDoc& option);
/// Names of all options whose value is the next word, separated by `divider`.
[[nodiscard]] std::string value_options(const std::vector<CommandDoc>& tree,
                                        std::string_view divider);
/// What `session kill` is given most.
inline constexpr std::string_view kSignals = "INT TERM HUP QUIT KILL USR1 USR2 STOP CONT";
/// "-p|--policy".
[[nodiscard]] std::string all_names(const OptionDoc& option, std::string_view divider);
/// Names of all options of a command, separated by blanks.
[[nodiscard]] std::string option_names(const CommandDoc& command);
/// The first sentence of an option's text.
[[nodiscard]] std::string_view summary(const OptionDoc& option);

/// First words of commands, each once, in order.
[[nodiscard]] std::vector<std::string> first_words(const std::vector<CommandDoc>& tree);
/// Second words, as in "policy list", "policy show"; none if the first word is a command of its own.
[[nodiscard]] std::vector<std::string> second_words(const std::vector<CommandDoc>& tree,
                                                    std::string_view first);
[[nodiscard]] const CommandDoc& run_of(const std::vector<CommandDoc>& tree);
/// Commands other than `run`, with their descriptions.
[[nodiscard]] std::vector<const CommandDoc*> small_commands(const std::vector<CommandDoc>& tree);
/// Options of all commands, each name once: a name means the same in every command.
[[nodiscard]] std::vector<const OptionDoc*> all_options(const std::vector<CommandDoc>& tree);

}  // namespace sbx::cli::completion
