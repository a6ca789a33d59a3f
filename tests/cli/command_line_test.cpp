#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/app.hpp"

namespace sbx::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Invocation> parse(const std::vector<const char*>& words) {
  return parse_command_line(words);
}

Invocation parsed(const std::vector<const char*>& words) {
  auto typed = parse(words);
  EXPECT_TRUE(typed.has_value()) << (typed ? "" : typed.error().text());
  return typed ? *typed : Invocation{};
}

Error refused(const std::vector<const char*>& words) {
  const auto typed = parse(words);
  EXPECT_FALSE(typed.has_value());
  return typed ? Error{} : typed.error();
}

std::string override_of(const Invocation& typed, std::string_view key) {
  for (const auto& each : typed.named)
    if (each.key == key) return each.toml;
  return "nothing";
}

TEST(CommandLine, EverythingFromTheFirstOperandOnBelongsToTheProgram) {
  const auto typed =
      parsed({"run", "-p", "strict", "python3", "-c", "print(1)", "--json", "-q", "--"});
  EXPECT_THAT(typed.request.operands,
              ElementsAre("python3", "-c", "print(1)", "--json", "-q", "--"));
  EXPECT_FALSE(typed.output.json);
  EXPECT_FALSE(typed.output.quiet);
  EXPECT_FALSE(typed.request.code);
  EXPECT_FALSE(typed.request.after_dashes);
}

TEST(CommandLine, OptionsBeforeTheOperandAreSbxsOwn) {
  const auto typed = parsed({"run", "--json", "-q", "python3"});
  EXPECT_TRUE(typed.output.json);
  EXPECT_TRUE(typed.output.quiet);
  EXPECT_THAT(typed.request.operands, ElementsAre("python3"));
}

TEST(CommandLine, DashesEndTheOptionsAndAreTakenOnce) {
  const auto typed = parsed({"run", "-q", "--", "--odd-name", "--", "-x"});
  EXPECT_THAT(typed.request.operands, ElementsAre("--odd-name", "--", "-x"));
  EXPECT_TRUE(typed.request.after_dashes);
}

TEST(CommandLine, BytesThatAreNotTextReachTheProgramUnchanged) {
  const auto typed = parsed({"run", "cat", "\xff\xfe", "", "a b", "[x,y]", "{z}"});
  EXPECT_THAT(typed.request.operands, ElementsAre("cat", "\xff\xfe", "", "a b", "[x,y]", "{z}"));
}

TEST(CommandLine, AValueMayLookLikeAnOption) {
  const auto typed = parsed({"run", "--lang", "--json", "-c", "--quiet", "--", "x"});
  EXPECT_EQ(typed.request.language, "--json");
  EXPECT_EQ(typed.request.code, "--quiet");
  EXPECT_FALSE(typed.output.json);
}

TEST(CommandLine, ShortOptionsMayStandTogetherAndCarryTheirValue) {
  const auto typed = parsed({"run", "-qvpstrict", "-p", "python", "true"});
  EXPECT_TRUE(typed.output.quiet);
  EXPECT_TRUE(typed.output.verbose);
  ASSERT_EQ(typed.policies.size(), 2U);
  EXPECT_EQ(typed.policies[0].text, "strict");
  EXPECT_EQ(typed.policies[1].text, "python");
}

TEST(CommandLine, AListInBracketsStaysOneValue) {
  const auto typed =
      parsed({"run", "--read", "[a,b]", "--set", "filesystem.read=[\"/x\", \"/y\"]", "true"});
  EXPECT_EQ(override_of(typed, "filesystem.read"), "[{ source = \"[a,b]\" }]");
  ASSERT_EQ(typed.sets.size(), 1U);
  EXPECT_EQ(typed.sets[0].key, "filesystem.read");
  EXPECT_EQ(typed.sets[0].toml, "[\"/x\", \"/y\"]");
  EXPECT_FALSE(typed.sets[0].append);
}

TEST(CommandLine, AnEqualsSignGivesTheValueEvenWhenEmpty) {
  EXPECT_EQ(override_of(parsed({"run", "--timeout=5s", "true"}), "limits.wall_time"), "\"5s\"");
  EXPECT_EQ(refused({"run", "--timeout=", "true"}).code, "bad-value");
}

TEST(CommandLine, OfAScalarGivenTwiceTheLastCounts) {
  const auto typed = parsed({"run", "--timeout", "5s", "--timeout", "7s", "true"});
  EXPECT_EQ(override_of(typed, "limits.wall_time"), "\"7s\"");
}

TEST(CommandLine, OfGrantsGivenTwiceBothCount) {
  const auto typed = parsed({"run", "--read", "/a", "--read", "/b:/c", "true"});
  ASSERT_EQ(typed.named.size(), 2U);
  EXPECT_EQ(typed.named[0].toml, "[{ source = \"/a\" }]");
  EXPECT_EQ(typed.named[1].toml, "[{ source = \"/b\", target = \"/c\" }]");
  EXPECT_TRUE(typed.named[0].append);
  EXPECT_EQ(typed.named[0].option, "--read");
}

TEST(CommandLine, LimitsBecomePolicyOverrides) {
  const auto typed =
      parsed({"run", "--cpu-time", "2s", "--cpus", ".5", "--memory", "1G", "--processes", "9",
              "--disk", "2M", "--output", "64K", "--net", "host", "true"});
  EXPECT_EQ(override_of(typed, "limits.cpu_time"), "\"2s\"");
  EXPECT_EQ(override_of(typed, "limits.cpus"), "0.5");
  EXPECT_EQ(override_of(typed, "limits.memory"), "\"1G\"");
  EXPECT_EQ(override_of(typed, "limits.processes"), "9");
  EXPECT_EQ(override_of(typed, "limits.disk"), "\"2M\"");
  EXPECT_EQ(override_of(typed, "output.stdout"), "\"64K\"");
  EXPECT_EQ(override_of(typed, "output.stderr"), "\"64K\"");
  EXPECT_EQ(override_of(typed, "network.mode"), "\"host\"");
}

TEST(CommandLine, ProgramFromStandardInputAndFromAnArgument) {
  const auto from_input = parsed({"run", "--lang", "python", "-", "a", "-b"});
  EXPECT_TRUE(from_input.request.code_from_stdin);
  EXPECT_THAT(from_input.request.operands, ElementsAre("a", "-b"));
  const auto from_argument = parsed({"run", "--lang", "python", "-c", "print(1)", "a"});
  EXPECT_EQ(from_argument.request.code, "print(1)");
  EXPECT_THAT(from_argument.request.operands, ElementsAre("a"));
  const auto a_command = parsed({"run", "--", "-"});
  EXPECT_FALSE(a_command.request.code_from_stdin);
  EXPECT_THAT(a_command.request.operands, ElementsAre("-"));
}

TEST(CommandLine, EnvironmentIsPassedByNameOrSet) {
  const auto typed =
      parsed({"run", "--env", "TZ", "--env", "A=b=c", "--env-file", "f", "--env-fd", "7", "true"});
  EXPECT_EQ(override_of(typed, "environment.pass"), "[\"TZ\"]");
  ASSERT_EQ(typed.variables.size(), 3U);
  EXPECT_EQ(refused({"run", "--env", "1A=x", "true"}).code, "bad-value");
}

TEST(CommandLine, InputsAreKeptAsTyped) {
  const auto typed =
      parsed({"run", "--in", "a b", "--in", "x\\:y:in/", "--in=f:/tmp/g", "--explain", "true"});
  ASSERT_EQ(typed.request.inputs.size(), 3U);
  EXPECT_EQ(typed.request.inputs[0].source, "a b");
  EXPECT_EQ(typed.request.inputs[0].target, "");
  EXPECT_EQ(typed.request.inputs[1].source, "x:y");
  EXPECT_EQ(typed.request.inputs[1].target, "in/");
  EXPECT_EQ(typed.request.inputs[2].target, "/tmp/g");
  EXPECT_TRUE(typed.request.explain);
  for (const char* wrong : {"", ":x", "x:", "a:b:c"})
    EXPECT_EQ(refused({"run", "--in", wrong, "true"}).code, "bad-value") << wrong;
}

TEST(CommandLine, BringingOutIsAskedForInParts) {
  const auto typed =
      parsed({"run", "--out", "d", "--diff", "--apply=*.c", "--apply=*.h", "--yes", "x"});
  EXPECT_EQ(typed.bring_out.directory, "d");
  EXPECT_TRUE(typed.bring_out.diff && typed.bring_out.apply && typed.bring_out.yes);
  EXPECT_THAT(typed.bring_out.patterns, ElementsAre("*.c", "*.h"));
  EXPECT_THAT(parsed({"run", "--apply", "x"}).bring_out.patterns, IsEmpty());
  EXPECT_FALSE(parsed({"run", "x"}).bring_out.apply);
}

TEST(CommandLine, AnOptionalValueNeverTakesTheProgram) {
  EXPECT_THAT(parsed({"run", "--apply", "make"}).request.operands, ElementsAre("make"));
}

struct Typo {
  std::vector<const char*> words;
  const char* code;
  const char* hint;
};
class CommandLineTypo : public testing::TestWithParam<Typo> {};

TEST_P(CommandLineTypo, IsAnErrorWithASuggestion) {
  const Error error = refused(GetParam().words);
  EXPECT_EQ(error.kind, ErrorKind::usage);
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_THAT(error.hint, HasSubstr(GetParam().hint));
}

INSTANTIATE_TEST_SUITE_P(
    Known, CommandLineTypo,
    testing::Values(Typo{{"run", "--tiemout", "3s", "x"}, "unknown-option", "\"--timeout\""},
                    Typo{{"run", "--time", "3s", "x"}, "unknown-option", "\"--timeout\""},
                    Typo{{"run", "-Z", "x"}, "unknown-option", "sbx run --help"},
                    Typo{{"run", "--net", "hots", "x"}, "bad-value", "\"host\""},
                    Typo{{"run", "--require", "landlok", "x"}, "bad-value", "\"landlock\""},
                    Typo{{"run", "--workspace", ".:overlya", "x"}, "bad-value", "\"overlay\""},
                    Typo{{"run", "--timeout", "30", "x"}, "bad-value", "30s"},
                    Typo{{"rnu", "x"}, "unknown-command", "\"sbx run\""},
                    Typo{{"policy", "lsit"}, "unknown-command", "\"sbx policy list\""},
                    Typo{{"polcy", "lsit"}, "unknown-command", "\"sbx policy list\""},
                    Typo{{"session", "rnu"}, "unknown-command", "has start, exec"},
                    Typo{{"session", "strat"}, "unknown-command", "\"sbx session start\""},
                    Typo{
                        {"check", "x.toml"}, "unknown-command", "sbx policy check, sbx mcp check?"},
                    Typo{{"show", "x"}, "unknown-command", "sbx policy show, sbx session show"},
                    Typo{{"session", "extend", "work", "-5m"}, "unknown-option", "no sign: 5m"},
                    Typo{{"policy"}, "missing-command", "list"},
                    Typo{{"run"}, "nothing-to-run", "sbx run script.py"}));

TEST(CommandLine, ASwitchTakesNoValueAndAnOptionNeedsOne) {
  EXPECT_EQ(refused({"run", "--json=true", "x"}).code, "unexpected-value");
  EXPECT_EQ(refused({"run", "--timeout"}).code, "missing-value");
  EXPECT_EQ(refused({"run", "-p"}).code, "missing-value");
}

TEST(CommandLine, ReservedAndLaterCommandsSaySo) {
  for (const char* name : {"learn", "batch", "report", "test", "serve"})
    EXPECT_EQ(refused({name}).code, "reserved") << name;
  for (const char* name : {"policy", "changes", "session"})
    EXPECT_EQ(refused({name}).code, "missing-command") << name;
}

TEST(CommandLine, HelpNeedsNoOperand) {
  EXPECT_TRUE(parsed({"run", "--help"}).help);
  EXPECT_TRUE(parsed({"--version"}).version);
  EXPECT_EQ(parsed({"policy", "show", "strict", "--effective"}).operands.front(), "strict");
}

TEST(CommandLine, AWrongLineStillSaysWhereItsRecordGoes) {
  const std::vector<const char*> words{"run",         "--json", "--bogus", "--report", "r.json",
                                       "--report-fd", "7",      "ls",      "--quiet"};
  EXPECT_EQ(refused(words).code, "unknown-option");
  const Invocation typed = salvage_output(words);
  EXPECT_TRUE(typed.output.json);
  EXPECT_EQ(typed.output.report_file, "r.json");
  EXPECT_EQ(typed.output.report_fd, 7);
  EXPECT_FALSE(typed.output.quiet);
}

}  // namespace
}  // namespace sbx::cli
