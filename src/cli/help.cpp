#include "cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/answer.hpp"
#include "cli/guide.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kTextColumn = 30;

/// Breaks lines at blanks to fit the width; indents continuation lines.
std::string wrapped(std::string_view text, std::size_t width, std::size_t begin = kTextColumn) {
  std::string result;
  std::size_t column = begin;
  while (!text.empty()) {
    const auto blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    if (column > begin && column + 1 + word.size() > width) {
      result += "\n" + std::string(begin, ' ');
      column = begin;
    } else if (column > begin) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    text = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  }
  return result;
}

/// A name or a form, and what it is for.
std::string entry(const std::string& usage, std::string_view text, const Sheet& sheet) {
  const std::string gap = usage.size() + 2 > kTextColumn
                              ? "\n" + std::string(kTextColumn, ' ')
                              : std::string(kTextColumn - usage.size(), ' ');
  return sheet.paint.bold(usage) + gap + wrapped(text, sheet.width) + "\n";
}

std::string option_lines(const OptionDoc& option, const Sheet& sheet) {
  std::string text = entry((option.short_name.empty() ? "      " : "  ") + option_usage(option),
                           option.text, sheet);
  if (option.value.size() > 32 && !option.choices.empty())
    text += std::string(kTextColumn, ' ') +
            wrapped(fmt::format("NAME: {}", fmt::join(option.choices, ", ")), sheet.width) + "\n";
  return text;
}

/// The commands in groups; only those that begin with `beginning`.
std::string command_list(const std::vector<CommandDoc>& tree, const Sheet& sheet,
                         std::string_view beginning = {}) {
  std::string text;
  for (const HelpGroup& group : help_groups()) {
    std::string lines;
    for (const std::string_view name : group.commands) {
      const auto command = std::ranges::find(tree, name, &CommandDoc::name);
      if (command == tree.end() || !name.starts_with(beginning)) continue;
      lines +=
          entry(fmt::format("  {} {}", command->name, command->operands), command->text, sheet);
    }
    if (lines.empty()) continue;
    text += (text.empty() ? "" : "\n") + sheet.paint.bold(std::string(group.title) + ":") + "\n" +
            lines;
  }
  return text;
}

constexpr std::string_view kRunForms =
    "  sbx run [OPTIONS] SCRIPT|COMMAND [ARGS...]\n"
    "  sbx run [OPTIONS] -- COMMAND [ARGS...]\n"
    "  sbx run [OPTIONS] --lang NAME - [ARGS...]   the program is standard input\n"
    "  sbx run [OPTIONS] --lang NAME -c CODE [ARGS...]\n"
    "  sbx run [OPTIONS] --cells FILE              a notebook, or a script with\n"
    "                                              lines # %% (.js: // %%)\n"
    "\n"
    "Everything from the first operand on belongs to the program; options of sbx come first.\n";

constexpr std::string_view kRunPages =
    "\nSee sbx-run(1), sbx-policy(5), sbx-record(5), sbx-security(7).\n";

/// An example stays one line, so that it can be copied.
std::string guide_lines(std::string_view command, const Sheet& sheet) {
  const Guide* const guide = guide_of(command);
  if (guide == nullptr) return {};
  std::string text = "\n" + sheet.paint.bold("Examples:") + "\n";
  for (const char* const example : guide->examples) text += fmt::format("  {}\n", example);
  return text + "\n" + sheet.paint.bold("Exit status:") + "\n  " +
         wrapped(guide->statuses, sheet.width, 2) + "\n";
}

std::string family_text(const std::vector<CommandDoc>& tree, const std::string& family,
                        const Sheet& sheet) {
  const std::string list = command_list(tree, sheet, family + " ");
  if (list.empty()) return {};
  return list + fmt::format("\n\"sbx help {} COMMAND\" explains one, with examples.\n", family);
}

}  // namespace

std::string option_usage(const OptionDoc& option) {
  std::string text = option.short_name;
  if (!option.long_name.empty()) text += (text.empty() ? "" : ", ") + option.long_name;
  if (option.value.empty()) return text;
  if (option.value.starts_with('[')) return text + "[=" + option.value.substr(1);
  // A long list of choices would displace the text; the text explains them.
  return text + " " + (option.value.size() > 32 ? std::string("NAME") : option.value);
}

std::string help_text(const std::vector<CommandDoc>& tree, std::string_view command,
                      const Sheet& sheet) {
  const auto found = std::ranges::find(tree, command, &CommandDoc::name);
  if (found == tree.end()) return family_text(tree, std::string(command), sheet);
  const Paint& paint = sheet.paint;
  std::string text = wrapped(found->text, sheet.width, 0) + "\n\n" + paint.bold("Usage:") + "\n";
  if (command == "run")
    text += fitted(kRunForms, sheet.width);
  else
    text += fmt::format("  sbx{}{}{}{}\n", command.empty() ? "" : " ", command,
                        found->operands.empty() ? "" : " ", found->operands);
  if (command.empty()) text += "\n" + command_list(tree, sheet);
  std::vector<std::string> groups;
  for (const OptionDoc& option : found->options)
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  for (const std::string& group : groups) {
    text += "\n" + paint.bold(group + ":") + "\n";
    for (const OptionDoc& option : found->options)
      if (option.group == group) text += option_lines(option, sheet);
  }
  text += guide_lines(command, sheet);
  if (command == "run") text += fitted(kRunPages, sheet.width);
  if (command.empty()) text += "\n\"sbx help COMMAND\" explains one, with examples.\n";
  return text;
}

}  // namespace sbx::cli
