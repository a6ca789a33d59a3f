#include <gtest/gtest.h>

#include <string>

#include "cli/mcp_install/registration.hpp"

namespace sbx::cli::mcp_install {
namespace {

const Registration kWanted{.words = {"/usr/bin/sbx", "mcp", "-p", "agent"}};
const File kBoth{.registers = true, .permits = true};

Registration live(bool replaces_shell) {
  Registration wanted = kWanted;
  wanted.is_live = true;
  wanted.replaces_shell = replaces_shell;
  return wanted;
}

std::string changed(const std::string& client, const std::string& text,
                    const Registration& wanted = kWanted, Change change = Change::install) {
  auto result = changed_text(*find_client(client), kBoth, wanted, change, text);
  return result ? *result : "refused: " + result.error().message;
}
Found found(const std::string& client, const std::string& text) {
  auto result = found_in(*find_client(client), "sbx", text);
  EXPECT_TRUE(result) << text;
  return result ? *result : Found{};
}

TEST(McpInstallRegistration, EveryClientIsReadAsItWasWritten) {
  for (const Client& client : clients()) {
    const std::string text = changed(client.name, "");
    const Found seen = found(client.name, text);
    EXPECT_EQ(seen.words, kWanted.words) << text;
    EXPECT_FALSE(seen.denies_shell) << text;
    EXPECT_EQ(changed(client.name, text), text) << "a second time";
    EXPECT_TRUE(
        found(client.name, changed(client.name, text, kWanted, Change::remove)).words.empty());
  }
}

TEST(McpInstallRegistration, TheShellIsDeniedAndGivenBack) {
  for (const Client& client : clients()) {
    if (*client.shell_key == '\0') continue;
    const std::string text = changed(client.name, "", live(true));
    EXPECT_TRUE(found(client.name, text).denies_shell) << text;
    EXPECT_EQ(changed(client.name, text, live(true)), text) << "a second time";
    // Without being told to, nothing lets the client's shell in again.
    EXPECT_TRUE(found(client.name, changed(client.name, text, live(false))).denies_shell);
    const std::string kept = changed(client.name, text, kWanted, Change::remove);
    EXPECT_TRUE(found(client.name, kept).denies_shell) << kept;
    EXPECT_FALSE(
        found(client.name, changed(client.name, text, live(true), Change::remove)).denies_shell);
  }
}

TEST(McpInstallRegistration, NothingIsApprovedWhereTheModelReachesTheUsersFiles) {
  Registration applies = kWanted;
  applies.allows_apply = true;
  for (const Client& client : clients()) {
    const std::string approved = changed(client.name, "");
    for (const Registration& wanted : {live(false), live(true), applies}) {
      for (const std::string& before : {std::string(), approved}) {
        const std::string text = changed(client.name, before, wanted);
        for (const char* const word : {"trust", "allow\": [\n", "approv", "mcp__sbx__"})
          EXPECT_FALSE(text.contains(word)) << text;
      }
    }
  }
  // The twin: what is approved is what reaches the sandbox only, and is dropped above.
  EXPECT_TRUE(changed("claude", "").contains("\"mcp__sbx__run_code\""));
  EXPECT_FALSE(changed("claude", "").contains("write_file"));
  EXPECT_TRUE(changed("gemini", "").contains("\"trust\": true"));
  EXPECT_TRUE(
      changed("codex", "").contains("[mcp_servers.sbx.tools.wait]\napproval_mode = \"approve\""));
  EXPECT_FALSE(changed("codex", "").contains("apply_changes"));
}

TEST(McpInstallRegistration, WhatIsThereStays) {
  const std::string claude =
      R"({"numStartups": 12, "mcpServers": {"other": {"command": "x"}}, "permissions": {"allow": ["Read"], "deny": ["WebFetch"]}})";
  const std::string text = changed("claude", claude, live(true));
  for (const char* const kept : {"\"numStartups\": 12", "\"other\": {\"command\": \"x\"}",
                                 "\"allow\": [\"Read\"]", "\"deny\": [\"WebFetch\",\"Bash\"]"})
    EXPECT_TRUE(text.contains(kept)) << text;
  const std::string removed = changed("claude", text, live(true), Change::remove);
  EXPECT_EQ(removed, claude);
  const std::string codex = "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n";
  EXPECT_TRUE(changed("codex", codex, live(true)).starts_with(codex));
  EXPECT_EQ(changed("codex", changed("codex", codex, live(true)), live(true), Change::remove),
            codex);
}

TEST(McpInstallRegistration, AnEntryOfSomebodyElseIsLeftAlone) {
  for (const char* const entry :
       {R"({"command": "/usr/bin/other", "args": ["mcp"]})", R"({"command": "sbx"})",
        R"({"command": "sbx", "args": ["mcp"], "env": {"A": "b"}})", R"({"url": "http://x"})",
        R"("sbx mcp")"}) {
    const std::string text = R"({"mcpServers": {"sbx": )" + std::string(entry) + "}}";
    for (const Change change : {Change::install, Change::remove})
      EXPECT_TRUE(
          changed("gemini", text, kWanted, change).contains("mcpServers.sbx is there already"))
          << text;
  }
  const std::string own = R"({"mcpServers": {"sbx": {"command": "/old/sbx", "args": ["mcp"]}}})";
  EXPECT_EQ(found("gemini", changed("gemini", own)).words, kWanted.words);
  EXPECT_TRUE(changed("opencode", R"({"permission": {"bash": "ask"}})", live(true))
                  .starts_with("refused: permission.bash is there already"));
  EXPECT_TRUE(changed("opencode", R"({"permission": "ask"})", live(true)).starts_with("refused: "));
  EXPECT_TRUE(changed("codex", "[features]\nx = true\n", live(true)).starts_with("refused: "));
  const std::string denied = "[features]\nshell_tool = false\n";
  EXPECT_TRUE(changed("codex", denied, live(true)).starts_with(denied));
  EXPECT_EQ(changed("codex", changed("codex", denied, live(true)), live(true), Change::remove),
            denied);
}

TEST(McpInstallRegistration, AnEntryThatCodexHasWrittenAnewIsKnown) {
  const std::string text = changed("codex", "");
  const std::string anew = text.substr(text.find('\n') + 1);  // without the first mark
  EXPECT_EQ(changed("codex", anew), text);
  EXPECT_EQ(changed("codex", anew, kWanted, Change::remove), "");
  const std::string more = anew + "[mcp_servers.sbx.env]\nA = \"b\"\n";
  EXPECT_TRUE(changed("codex", more).starts_with("refused: "));
}

TEST(McpInstallRegistration, WordsOfAShellAreNoOrders) {
  Registration wanted = kWanted;
  wanted.words.insert(wanted.words.end(),
                      {"--workspace", "a \"b\"\\ $(c)\n[features]\nshell_tool = true"});
  for (const Client& client : clients())
    EXPECT_EQ(found(client.name, changed(client.name, "", wanted)).words, wanted.words);
}

TEST(McpInstallRegistration, ADenialThatAnotherTwinUndoesIsNone) {
  const auto denies = [](const std::string& permissions) {
    return found("claude", "{\"permissions\": " + permissions + "}").denies_shell;
  };
  EXPECT_TRUE(denies(R"({"deny": ["Bash"]})"));
  EXPECT_FALSE(denies(R"({"deny": ["Bash"]}, "permissions": {})"));
  EXPECT_FALSE(denies(R"({"deny": "Bash"})"));
  EXPECT_FALSE(denies("{\"deny\": [\"Bash(ls)\"]}"));
  EXPECT_FALSE(found("codex", "[features]\nshell_tool = true\n").denies_shell);
  const std::string off = R"({"mcp": {"sbx": {"command": ["sbx", "mcp"], "enabled": false}}})";
  EXPECT_TRUE(found("opencode", off).is_off);
}

TEST(McpInstallRegistration, AnySettingsFileOfAnyFormIsReadOrRefused) {
  for (const Client& client : clients())
    for (const char* const text :
         {"[]", "{\"mcpServers\": 1}", "mcp = 1", "\x00", "{\"mcp\": []}", "# x"})
      (void)changed(client.name, text, live(true));
}

}  // namespace
}  // namespace sbx::cli::mcp_install
