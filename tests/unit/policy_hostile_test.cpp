#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::ElementsAre;

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(PolicyHostile, DeepListsAreRefused) {
  EXPECT_THAT(codes(findings_of("a = " + repeated("[", 500'000))), ElementsAre("nested-too-deep"));
  EXPECT_THAT(codes(findings_of("a = " + repeated("{a=", 300'000))),
              ElementsAre("nested-too-deep"));
}

TEST(PolicyHostile, DeepDottedKeysAreRefusedWithTheirPlace) {
  for (const std::string& text :
       {repeated("a.", 500'000) + "a = 1", "\n\n[" + repeated("a.", 500'000) + "a]",
        "x = { " + repeated("\"a\".", 200'000) + "a = 1 }",
        "x = { s = \"\"\"x\"\"\"\", " + repeated("a.", 400'000) + "a = 1 }",
        "x = { s = '''x'''', " + repeated("a.", 400'000) + "a = 1 }"}) {
    const Findings findings = findings_of(text);
    EXPECT_THAT(codes(findings), ElementsAre("nested-too-deep")) << text.substr(0, 40);
    EXPECT_GT(findings.front().origin->column, 16);
  }
}

TEST(PolicyHostile, DotsInTextsAndCommentsAreNoDepth) {
  EXPECT_EQ(parsed("# " + repeated(". ", 100) + "\ndescription = \"" + repeated(".", 100) +
                   "\" # " + repeated(".", 100) + "\nname = '" + repeated(".", 100) +
                   "'\n[environment.set]\nA = \"\"\"\n" + repeated(".\n", 100) + "\"\"\"\nB = '''" +
                   repeated("..\"", 100) + "'''")
                .environment.set.size(),
            2U);
}

TEST(PolicyHostile, ManyMistakesAreCutShort) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "unknown" + std::to_string(i) + " = 1\n";
  const Findings findings = findings_of(text);
  EXPECT_EQ(findings.size(), 100U);
  EXPECT_EQ(findings.back().code, "too-many-findings");
}

TEST(PolicyHostile, LongListsAreCutShort) {
  std::string text = "[environment]\npass = [";
  for (int i = 0; i < 20000; ++i) text += "\"V" + std::to_string(i) + "\",";
  EXPECT_THAT(codes(findings_of(text + "]")), ElementsAre("too-many-entries"));
  text = "[environment.set]\n";
  for (int i = 0; i < 20000; ++i) text += "V" + std::to_string(i) + " = \"\"\n";
  EXPECT_THAT(codes(findings_of(text)), ElementsAre("too-many-entries"));
}

TEST(PolicyHostile, ListsHoldSoMuchAndNoMore) {
  const auto names = [](int count) {
    std::string text = "[filesystem]\ndeny = { replace = [";
    for (int i = 0; i < count; ++i) text += "\"/srv/" + std::to_string(i) + "\",\n";
    return text + "\"/srv/0\", \"/srv/100\"] }\n";
  };
  EXPECT_EQ(parsed(names(16384)).filesystem.deny.size(), 16384U) << "the same ones count once";
  EXPECT_THAT(codes(findings_of(names(16385))), ElementsAre("too-many-entries"));
}

TEST(PolicyHostile, TextsThatEndEarlyAreSyntaxErrors) {
  for (const char* text :
       {"[.",   "[=",  "[[.", "[",   "[]",  "a.",  "a.=1",    "x={.}",         "x={a.",
        "\"",   "'",   "x=[", "x={", "=",   "]",   "\\",      "x=\"\"\"",      "x=1e",
        "x=0x", "x=+", "x=-", "x=.", "x=t", "x=i", "x=1979-", "x=1979-05-27T", "\xEF\xBB"}) {
    const std::string code = findings_of(text).front().code;
    EXPECT_TRUE(code == "toml-syntax" || code == "invalid-utf8") << text << ": " << code;
  }
}

TEST(PolicyHostile, NulInTheTextIsASyntaxError) {
  EXPECT_THAT(codes(findings_of(std::string_view("name = \"a\0b\"", 12))),
              ElementsAre("toml-syntax"));
  EXPECT_THAT(codes(findings_of(std::string_view("\0", 1))), ElementsAre("toml-syntax"));
}

TEST(PolicyHostile, WindowsLineEndsAndByteOrderMarkAreRead) {
  const Policy policy = parsed("\xEF\xBB\xBFschema = 1\r\n[limits]\r\nprocesses = 7\r\n");
  EXPECT_EQ(policy.limits.processes.value, 7U);
  EXPECT_EQ(policy.limits.processes.origin.line, 3);
  const Findings findings = findings_of("[limits]\r\nprocesses = \"x\"\r\n");
  EXPECT_EQ(findings.front().source_line, "processes = \"x\"");
}

TEST(PolicyHostile, LongValuesAreShortInMessages) {
  const Findings findings = findings_of("[network]\nmode = \"" + repeated("é", 10'000) + "\"");
  EXPECT_LT(findings.front().message.size(), 300U);
  EXPECT_LE(findings.front().source_line.size(), 400U);
}

TEST(PolicyHostile, EscapesInMessagesAreHarmless) {
  const Findings findings = findings_of("\"\\u001b[2J\" = 1");
  EXPECT_EQ(findings.front().message.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace sbx::policy
