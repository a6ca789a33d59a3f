#include <gtest/gtest.h>

#include <string>

#include "cli/mcp_install/toml_edit.hpp"

namespace sbx::cli::mcp_install {
namespace {

const Block kServer{.about = "server sbx",
                    .names = {"servers", "sbx"},
                    .lines = "[servers.sbx]\ncommand = \"/usr/bin/sbx\"\n"};
constexpr const char* kText =
    "# begin: server sbx\n[servers.sbx]\ncommand = \"/usr/bin/sbx\"\n# end: server sbx\n";

std::string after_put(const std::string& text, const Block& block = kServer) {
  auto toml = TomlText::read(text);
  if (!toml) return "unread: " + toml.error().message;
  const Status done = toml->put(block);
  return done ? toml->text() : "refused: " + done.error().message;
}
std::string after_drop(const std::string& text) {
  auto toml = TomlText::read(text);
  if (!toml) return "unread: " + toml.error().message;
  const Status done = toml->drop(kServer);
  return done ? toml->text() : "refused: " + done.error().message;
}
constexpr const char* kThere = "refused: it has this table outside of what sbx has written";

TEST(McpInstallToml, AppendsABlockBelowWhatIsThere) {
  EXPECT_EQ(after_put(""), kText);
  EXPECT_EQ(after_put("a = 1 # mine\n"), std::string("a = 1 # mine\n\n") + kText);
  EXPECT_EQ(after_put("[x]\nd = 1979-05-27"), std::string("[x]\nd = 1979-05-27\n\n") + kText);
}

TEST(McpInstallToml, ASecondTimeChangesNothing) {
  const std::string once =
      after_put("a = 1\n") + "\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n";
  EXPECT_EQ(after_put(once), once);
}

TEST(McpInstallToml, ReplacesItsOwnBlockAndDropsIt) {
  const std::string before = "a = 1\n";
  const std::string after = "\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n";
  Block other = kServer;
  other.lines = "[servers.sbx]\ncommand = \"/opt/sbx\"\n";
  EXPECT_EQ(after_put(after_put(before) + after, other), before + after + "\n" + text_of(other));
  EXPECT_EQ(after_drop(after_put(before)), before);
  EXPECT_EQ(after_drop(after_put(before) + after), before + after);
  EXPECT_EQ(after_drop(before), before);
}

TEST(McpInstallToml, LeavesATableOfTheSameNameAlone) {
  for (const std::string there :
       {"[servers.sbx]\ncommand = \"x\"\n", "[servers]\nsbx = { command = \"x\" }\n",
        "servers.sbx.command = \"x\"\n", "[servers.\"sbx\"]\n"}) {
    EXPECT_EQ(after_put(there), kThere) << there;
    EXPECT_EQ(after_drop(there), kThere) << there;
  }
}

TEST(McpInstallToml, LosesNothingThatOthersPutBetweenItsMarks) {
  // As a client does that writes its file anew and keeps a comment before what follows.
  const std::string foreign =
      "# begin: server sbx\n[servers.sbx]\ncommand = \"/usr/bin/sbx\"\n\n[projects.\"/x\"]\n"
      "trust_level = \"trusted\"\n# end: server sbx\n";
  EXPECT_EQ(after_drop(foreign), kThere);
  EXPECT_EQ(after_put(foreign).substr(0, 8), "refused:");
  // A value of its own table goes with it.
  EXPECT_EQ(after_drop("# begin: server sbx\n[servers.sbx]\nx = 1\n# end: server sbx\n"), "");
}

TEST(McpInstallToml, FindsItsOwnTableWithoutTheMarks) {
  // As Codex leaves the block when it adds a server.
  const std::string rewritten =
      "a = 1\n\n[servers.sbx]\ncommand = \"/usr/bin/sbx\"\n\n[servers.sbx.tools.x]\ny = 1\n\n"
      "[servers.other]\nz = 1\n# end: server sbx\n\n[servers.sbx-two]\n";
  const std::string without = "a = 1\n\n[servers.other]\nz = 1\n\n[servers.sbx-two]\n";
  Block own = kServer;
  own.is_own = true;
  auto toml = TomlText::read(rewritten);
  ASSERT_TRUE(toml);
  ASSERT_TRUE(toml->drop(own));
  EXPECT_EQ(toml->text(), without);
  EXPECT_EQ(after_put(rewritten, own), without + "\n" + kText);
  EXPECT_EQ(after_drop(rewritten), kThere);  // the twin: it may be somebody else's
  const std::string spread = "servers.sbx.command = \"x\"\n";
  EXPECT_EQ(after_put(spread, own), kThere);
}

TEST(McpInstallToml, TakesMarksInAStringForNoMarks) {
  const std::string text = "s = '''\n" + std::string(kText) + "'''\n";
  EXPECT_EQ(after_drop(text), text);
  EXPECT_EQ(after_put(text), text + "\n" + kText);
}

TEST(McpInstallToml, RefusesWhatIsNoTomlOrWouldMeanSomethingElse) {
  EXPECT_TRUE(after_put("a = ").starts_with("unread: it is not TOML: "));
  EXPECT_TRUE(after_put("{\"a\": 1}").starts_with("unread: it is not TOML: "));
  EXPECT_TRUE(after_put("servers = { x = 1 }\n").starts_with("refused: "));
  EXPECT_TRUE(after_put("servers = 1\n").starts_with("refused: "));
  EXPECT_TRUE(after_put("a = \"\"\"\n").starts_with("unread: it is not TOML: "));
}

}  // namespace
}  // namespace sbx::cli::mcp_install
