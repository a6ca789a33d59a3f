#include "cli/mcp_install/words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace sbx::cli::mcp_install {
namespace {

std::string files_words(const std::vector<Edit>& edits) {
  std::string text;
  for (const Edit& each : edits)
    if (each.changes()) text += "wrote " + printable(each.file.location.path()) + "\n";
  return text.empty() ? "nothing to change\n" : text;
}

std::string approval_words(const Client& client, const Registration& wanted) {
  if (client.entry == Entry::one_list)
    return fmt::format("{} calls tools without a question, unless its \"permission\" says ask.\n",
                       client.title);
  if (!wanted.is_approved())
    return fmt::format("{} asks before each call as far as it is set up to: {}.\n", client.title,
                       wanted.allows_apply ? "the model may write to your files"
                                           : "the model can change files of yours");
  if (client.entry == Entry::gemini)
    return fmt::format("{} calls the tools of the server without a question.\n", client.title);
  if (*client.allowed_key != '\0' || client.entry == Entry::toml_table)
    return fmt::format("{} calls run_code, run_command, wait and read_file without a question.\n",
                       client.title);
  return {};
}

std::string shell_words(const Client& client, const Registration& wanted) {
  if (wanted.replaces_shell)
    return fmt::format(
        "Its own shell is denied, and where sbx is missing nothing runs: \"sbx mcp check {}\" "
        "looks, "
        "\"sbx mcp remove {} --replace-shell\" gives it back.\n",
        client.name, client.name);
  if (*client.shell_key == '\0')
    return "Its own shell runs commands on the host; sbx knows no setting that denies it.\n";
  return "Its own shell still runs commands on the host: --replace-shell denies it.\n";
}

/// Says what no setting takes away where the workspace is live.
std::string remaining_words(const Client& client) {
  return fmt::format(
      "What the model can still do there, at once and without sbx apply:\n"
      "- It changes every file below the directory in which {} starts sbx, but for the protected "
      "names that are there (sbx-security(7), PROTECTED NAMES).\n"
      "- What you then build, test or start there runs on the host with your rights: source files, "
      "scripts, Makefile, package.json.\n"
      "- A protected name that it makes anew, such as .envrc, becomes NAME.sbx-refused within a "
      "second or at the call's end. Until then a program of the host may meet it.\n"
      "- The client's own tools that read and write files work on the host as before, on its "
      "settings "
      "too, as far as it does not ask you.\n",
      client.title);
}

std::string project_words(const Client& client, Scope scope) {
  if (scope == Scope::user) return {};
  return fmt::format(
      "It is for this project only, and {} may ask whether you trust it. Who can change the file "
      "decides what {} starts.\n",
      client.title, client.title);
}

}  // namespace

std::string command_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : " ") + shell_word(each);
  return printable(text);
}

std::string installed_words(const Client& client, const Registration& wanted, Scope scope,
                            const std::vector<Edit>& edits) {
  std::string text = files_words(edits);
  text += fmt::format("{} starts \"{}\" as: {}\n", client.title, wanted.name,
                      command_line(wanted.words));
  if (!client.is_tried) text += fmt::format("Not tried with the client {}.\n", client.title);
  text +=
      project_words(client, scope) + approval_words(client, wanted) + shell_words(client, wanted);
  return wanted.is_live ? text + remaining_words(client) : text;
}

std::string removed_words(const Client& client, const Registration& wanted,
                          const std::vector<Edit>& edits) {
  std::string text = files_words(edits);
  if (*client.shell_key != '\0' && !wanted.replaces_shell)
    text += fmt::format(
        "Where its own shell was denied it still is: \"sbx mcp remove {} --replace-shell\" gives "
        "it "
        "back.\n",
        client.name);
  return text;
}

std::string paste_words(const Client& client, const std::vector<File>& files,
                        const Registration& wanted) {
  std::string text;
  for (const File& each : files)
    if (const std::string paste = text_to_paste(client, each, wanted); !paste.empty())
      text += (text.empty() ? "" : "\n") + printable(each.location.path()) + ":\n" + paste;
  return text;
}

}  // namespace sbx::cli::mcp_install
