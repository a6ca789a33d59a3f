#include "cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sbx::cli {
namespace {

constexpr std::size_t kTextColumn = 30;
constexpr std::size_t kWidth = 90;

/// Breaks lines at blanks to fit the width; indents continuation lines.
std::string wrapped(std::string_view text) {
  std::string result;
  std::size_t column = kTextColumn;
  while (!text.empty()) {
    const auto blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    if (column > kTextColumn && column + 1 + word.size() > kWidth) {
      result += "\n" + std::string(kTextColumn, ' ');
      column = kTextColumn;
    } else if (column > kTextColumn) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    text = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  }
  return result;
}

std::string option_lines(const OptionDoc& option, const Paint& paint) {
  const std::string usage = (option.short_name.empty() ? "      " : "  ") + option_usage(option);
  const std::string gap = usage.size() + 2 > kTextColumn
                              ? "\n" + std::string(kTextColumn, ' ')
                              : std::string(kTextColumn - usage.size(), ' ');
  return paint.bold(usage) + gap + wrapped(option.text) + "\n";
}

std::string command_list(const std::vector<CommandDoc>& tree, const Paint& paint,
                         std::string_view beginning = {}) {
  std::string text;
  for (const CommandDoc& command : tree) {
    if (command.name.empty() || !command.name.starts_with(beginning)) continue;
    const std::string usage = fmt::format("  {} {}", command.name, command.operands);
    const std::string gap = usage.size() + 2 > kTextColumn
                                ? "\n" + std::string(kTextColumn, ' ')
                                : std::string(kTextColumn - usage.size(), ' ');
    text += paint.bold(usage) + gap + wrapped(command.text) + "\n";
  }
  return text;
}

constexpr std::string_view kRunForms =
    "  sbx run [OPTIONS] SCRIPT|COMMAND [ARGS...]\n"
    "  sbx run [OPTIONS] -- COMMAND [ARGS...]\n"
    "  sbx run [OPTIONS] --lang NAME - [ARGS...]         the program comes from standard input\n"
    "  sbx run [OPTIONS] --lang NAME -c CODE [ARGS...]\n"
    "  sbx run [OPTIONS] --cells FILE                    a notebook, or a script divided by # %%\n"
    "                                                    (.js: // %%)\n"
    "\n"
    "Everything from the first operand on belongs to the program: options of sbx come before it.\n";

constexpr std::string_view kRunExamples =
    "  sbx run --policy data-analysis script.py\n"
    "  sbx run --policy strict --timeout 5s -- node job.js --fast\n"
    "  sbx run --workspace .:overlay --json make test\n"
    "  echo 'print(6*7)' | sbx run --lang python -\n";

constexpr std::string_view kRunStatus =
    "  The command's own; 128+N when signal N killed it; 124 wall time; 125 sbx could not do its\n"
    "  job; 126 not executable; 127 not found; 137 memory; 152 CPU time; 153 size; 159 denied "
    "call.\n";

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
                      const Paint& paint) {
  const auto found = std::find_if(tree.begin(), tree.end(),
                                  [&](const CommandDoc& doc) { return doc.name == command; });
  if (found == tree.end()) return command_list(tree, paint, std::string(command) + " ");
  const bool run = command == "run";
  std::string text = found->text + "\n\n" + paint.bold("Usage:") + "\n";
  if (run)
    text += kRunForms;
  else
    text += fmt::format("  sbx{}{}{}{}\n", command.empty() ? "" : " ", command,
                        found->operands.empty() ? "" : " ", found->operands);
  if (command.empty()) text += "\n" + paint.bold("Commands:") + "\n" + command_list(tree, paint);
  std::vector<std::string> groups;
  for (const OptionDoc& option : found->options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end())
      groups.push_back(option.group);
  for (const std::string& group : groups) {
    text += "\n" + paint.bold(group + ":") + "\n";
    for (const OptionDoc& option : found->options) {
      if (option.group != group) continue;
      text += option_lines(option, paint);
      if (option.value.size() > 32 && !option.choices.empty())
        text += std::string(kTextColumn, ' ') +
                wrapped(fmt::format("NAME: {}", fmt::join(option.choices, ", "))) + "\n";
    }
  }
  if (run) {
    text += "\n" + paint.bold("Examples:") + "\n";
    text += kRunExamples;
    text += "\n" + paint.bold("Exit status:") + "\n";
    text += kRunStatus;
    text += "\nSee sbx-run(1), sbx-policy(5), sbx-record(5), sbx-security(7).\n";
  }
  return text;
}

}  // namespace sbx::cli
