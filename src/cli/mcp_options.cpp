#include "cli/mcp_options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "cli/option_rows.hpp"
#include "cli/take.hpp"

namespace sbx::cli {
namespace {

Status take_max_text(Invocation& typed, std::string_view value) {
  constexpr std::size_t kLeast = 1'000;
  constexpr std::size_t kMost = 1'000'000;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), typed.mcp.max_text);
  const bool is_number = error == std::errc{} && end == value.data() + value.size();
  if (is_number && typed.mcp.max_text >= kLeast && typed.mcp.max_text <= kMost) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-value",
                    .message = "--max-text needs a number from 1000 to 1000000",
                    .hint = "for example --max-text 50000"});
}

Status take_log(Invocation& typed, std::string_view value) {
  typed.mcp.log = std::string(value);
  if (!value.empty()) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-value",
                    .message = "--log needs a file",
                    .hint = "for example --log ~/mcp.log"});
}

Status take_scope(Invocation& typed, std::string_view value) {
  typed.install.for_project = value == "project";
  return {};
}
Status take_server_name(Invocation& typed, std::string_view value) {
  typed.install.name = std::string(value);
  return {};
}

Rows rows_of_registering(const char* replace_shell) {
  Rows list = {{"--scope", "user|project", kOptions, kOnce,
                "Whose settings: those of the user, or those in the current directory. Without it: "
                "user.",
                take_scope},
               {"--name", "NAME", kOptions, kOnce,
                "What the client calls the server. Without it: sbx.", take_server_name}};
  if (*replace_shell != '\0')
    list.push_back({"--replace-shell", "", kOptions, kOnce, replace_shell,
                    sets<&Invocation::install, &McpInstallOptions::replaces_shell>});
  return list;
}

}  // namespace

std::span<const OptionRow> mcp_options() {
  static const Rows rows = [] {
    Rows list;
    for (const OptionRow& row : start_options())
      if (row.names != std::string_view("--json") && row.names != std::string_view("-q,--quiet") &&
          row.names != std::string_view("-v,--verbose") &&
          row.names != std::string_view("--die-with-parent"))
        list.push_back(row);
    list.front() = shared(
        "--policy", "The policy of the sandbox: a built-in's name or a file. Without it: agent.");
    Rows own{
        shared("--session",
               "Use the session of this name, and start it where it does not live. It outlives "
               "the server."),
        {"--shared-context", "", kOptions, kOnce,
         "Cells without a context_id share one interpreter for each language. For a client with "
         "one conversation for each server.",
         sets<&Invocation::mcp, &McpOptions::shares_contexts>},
        {"--allow-apply", "", kOptions, kOnce,
         "Offer the tool apply_changes: the model itself writes files that it names to the "
         "directory on the host. Protected names and conflicts are refused.",
         sets<&Invocation::mcp, &McpOptions::allows_apply>},
        {"--structured", "", kOptions, kOnce,
         "Give the record as structured content too. For programs: some clients then hide text and "
         "pictures from the model.",
         sets<&Invocation::mcp, &McpOptions::is_structured>},
        {"--max-text", "COUNT", kOptions, kOnce,
         "The most characters of a program's output in one answer, 1000 to 1000000. Without it: "
         "20000.",
         take_max_text},
        {"--log", "FILE", kOptions, kOnce,
         "Append a line of JSON for each call to FILE, which only the user can read: when, what, "
         "and "
         "how it ended, without what programs wrote.",
         take_log}};
    list.insert(list.begin() + 1, own.begin(), own.end());
    return list;
  }();
  return rows;
}

std::span<const OptionRow> mcp_tools_options() {
  static const Rows rows = [] {
    Rows list;
    for (const OptionRow& row : mcp_options())
      if (row.names != std::string_view("--session") && row.names != std::string_view("--log"))
        list.push_back(row);
    list.insert(list.begin(), OptionRow{"--sha256", "", kOptions, kOnce,
                                        "Print the SHA-256 of what is printed without it.",
                                        sets<&Invocation::mcp, &McpOptions::hashes>});
    return list;
  }();
  return rows;
}

std::span<const OptionRow> mcp_install_options() {
  static const Rows rows = [] {
    Rows list = rows_of_registering(
        "Deny the client's own shell too, and let run_command work on the same files: with "
        "--workspace .:read-write, where no workspace is named after --.");
    list.push_back({"--print", "", kOptions, kOnce,
                    "Print the files and what they must say, and change nothing. Without CLIENT: "
                    "for any other client.",
                    sets<&Invocation::install, &McpInstallOptions::prints>});
    return with_usual(std::move(list));
  }();
  return rows;
}

std::span<const OptionRow> mcp_remove_options() {
  static const Rows rows =
      with_usual(rows_of_registering("Give the client its own shell back too."));
  return rows;
}

std::span<const OptionRow> mcp_check_options() {
  static const Rows rows = [] {
    Rows list = rows_of_registering("");
    list.push_back(shared("--yes", "With --scope project, start what the project's file names."));
    return with_usual(std::move(list));
  }();
  return rows;
}

}  // namespace sbx::cli
