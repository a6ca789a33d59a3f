#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include <nlohmann/json.hpp>

#include <sbx/record.hpp>

#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/app.hpp"
#include "cli/completions/completions.hpp"
#include "record/captured.hpp"
#include "record/record.hpp"
#include "record/words.hpp"

namespace sbx::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

TEST(Text, Utf8IsToldFromOtherBytes) {
  for (const char* good :
       {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad :
       {"\xff", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80"})
    EXPECT_FALSE(is_utf8(bad));
  EXPECT_EQ(lossy_utf8("a\xff"
                       "b"),
            "a\xef\xbf\xbd"
            "b");
}

TEST(Answer, LinesBreakAtBlanksByTheColumnsThatTheyTake) {
  EXPECT_EQ(fitted("NAME  one two three\nshort\n", 12),
            "NAME  one\n      two\n      three\nshort\n");
  EXPECT_EQ(fitted("a \xe4\xb8\xad\xe6\x96\x87 b", 7), "a \xe4\xb8\xad\xe6\x96\x87\nb");
  EXPECT_EQ(fitted("a e\xcc\x81 b", 5), "a e\xcc\x81 b");
  EXPECT_EQ(fitted("\033[1mbold\033[0m b", 6), "\033[1mbold\033[0m b");
  EXPECT_EQ(fitted("\x80\x80\x80\x80\x80\x80 a", 3), "\x80\x80\x80\x80\x80\x80 a");
}

TEST(Text, Base64OfEveryRemainder) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(Text, ControlCharactersNeverReachATerminal) {
  EXPECT_EQ(printable("a\033[31mb\nc\x7f"), "a\\x1b[31mb\\x0ac\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(printable("\xff\xc3\xa9"), "\\xff\xc3\xa9");
  EXPECT_EQ(printable("\u202e\u2066\u061c\u2026"),
            "\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xd8\\x9c\u2026");
}

TEST(Text, Sha256OfKnownTexts) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

Stream cut(std::string head, std::string tail, std::uint64_t written) {
  return {.text = head + tail,
          .bytes = written,
          .truncated = true,
          .head_bytes = head.size(),
          .tail_bytes = tail.size()};
}

TEST(Captured, WholeOutputStaysAsItIs) {
  const record::Captured captured = record::captured_text({.text = "h\xc3\xa9", .bytes = 3});
  EXPECT_EQ(captured.text, "h\xc3\xa9");
  EXPECT_FALSE(captured.is_base64);
  EXPECT_EQ(captured.head_bytes, 3U);
}

TEST(Captured, TheGapHasALineThatCountsWhatIsMissing) {
  const record::Captured captured = record::captured_text(cut("ab", "yz", 100));
  EXPECT_EQ(captured.text, "ab\n… 96 bytes left out …\nyz");
}

TEST(Captured, ACharacterCutInTwoIsLeftOutWhole) {
  const record::Captured captured = record::captured_text(cut("a\xe2\x82",
                                                              "\xac"
                                                              "b",
                                                              50));
  EXPECT_FALSE(captured.is_base64);
  EXPECT_EQ(captured.head_bytes, 1U);
  EXPECT_EQ(captured.tail_bytes, 1U);
  EXPECT_EQ(captured.text, "a\n… 48 bytes left out …\nb");
}

TEST(Captured, OtherBytesAreBase64) {
  const record::Captured whole = record::captured_text({.text = "\xff\xfe", .bytes = 2});
  EXPECT_TRUE(whole.is_base64);
  EXPECT_EQ(whole.text, "//4=");
  EXPECT_TRUE(record::captured_text(cut("\xff\xff", "b", 50)).is_base64);
}

TEST(Captured, PassedThroughOutputHasNoText) {
  EXPECT_FALSE(record::captured_text({.bytes = 9}).text);
}

Json record_of(const run::Answer& answer) {
  return Json::parse(record::record_text({.id = "r_0"}, answer));
}

TEST(Record, NamesThatAreNotUtf8HaveAnExactTwin) {
  plan::Plan plan;
  plan.command = {"cat", "\xff"};
  const Json record = record_of({.plan = plan, .outcome = Outcome{}});
  EXPECT_EQ(record["command"], Json({"cat", "\xef\xbf\xbd"}));
  EXPECT_EQ(record["command_b64"], Json({"Y2F0", "/w=="}));
  plan.command = {"cat"};
  EXPECT_FALSE(record_of({.plan = plan, .outcome = Outcome{}}).contains("command_b64"));
}

TEST(Record, EveryVerdictHasItsOwnShape) {
  const auto outcome_of = [](Verdict verdict) {
    return record_of({.outcome = Outcome{.verdict = std::move(verdict), .detail = "d"}})["outcome"];
  };
  EXPECT_EQ(outcome_of(Exited{0})["success"], true);
  EXPECT_EQ(outcome_of(Exited{3})["exit_code"], 3);
  EXPECT_EQ(outcome_of(Exited{3})["success"], false);
  EXPECT_EQ(outcome_of(Signaled{11})["signal"], 11);
  EXPECT_EQ(outcome_of(OverBudget{Budget::cpu_time})["reason"], "cpu_time");
  EXPECT_EQ(outcome_of(Denied{"ptrace"})["reason"], "syscall");
  EXPECT_EQ(outcome_of(Cancelled{2})["status"], "cancelled");
  EXPECT_EQ(outcome_of(Lost{})["status"], "lost");
  EXPECT_EQ(outcome_of(Lost{})["code"], "init-killed");
}

/// The record, read back by the public C++ library.
TEST(Record, IsReadBackAsTypes) {
  Outcome outcome{.verdict = OverBudget{Budget::memory}, .detail = "d"};
  outcome.out = {.text = "\xff\x01", .bytes = 2, .head_bytes = 2};
  outcome.err = {.bytes = 4, .joined = true};
  outcome.write_error = WriteError{"stdout", ENOSPC};
  outcome.limits_met = {{"memory", 7, std::nullopt, Evidence::sampled}};
  outcome.denials = {{DenialKind::syscall, "\xfe", 3, "p", "r", "a", "k", {"--x", "y"}}};
  outcome.network_used = {{"a:1", 1, 2, 3}};
  outcome.network_failures = {{"b:1", "no such name", 2}};
  outcome.degraded = {{.promise = Promise::memory, .why = "y"},
                      {.promise = Promise::one_grant, .path = "/p", .why = "y2", .instead = "i"}};
  outcome.usage = {1, 2, 3, 4, std::nullopt, 6};
  outcome.changes = {{"n\xff", ChangeKind::mode, FileType::link, 5, 0755}};
  outcome.appeared = {{"p", true}};
  outcome.hazards = {{"h", "y"}};
  outcome.changes_left_out = 8;
  outcome.hazards_left_out = 9;
  const auto record = read_record(record::record_text({.id = "r_1"}, {.outcome = outcome}));
  ASSERT_TRUE(record && record->outcome);
  const Outcome& back = *record->outcome;
  EXPECT_EQ(record->id, "r_1");
  EXPECT_EQ(record->status, "over-budget");
  EXPECT_EQ(back.verdict, outcome.verdict);
  EXPECT_EQ(back.out.text, outcome.out.text);
  EXPECT_EQ(back.out.head_bytes, 2U);
  EXPECT_TRUE(back.err.joined);
  EXPECT_FALSE(back.err.text);
  EXPECT_EQ(back.write_error->errno_value, ENOSPC);
  EXPECT_EQ(back.limits_met[0].evidence, Evidence::sampled);
  EXPECT_FALSE(back.limits_met[0].peak);
  EXPECT_EQ(back.denials[0].what, "\xfe");
  EXPECT_THAT(back.denials[0].options, ElementsAre("--x", "y"));
  EXPECT_EQ(back.network_used[0].bytes_out, 3U);
  EXPECT_EQ(back.network_failures[0].why, "no such name");
  EXPECT_EQ(back.degraded[0].promise, Promise::memory);
  EXPECT_EQ(back.degraded[1].what(), "'/p'");
  EXPECT_EQ(back.degraded[1].instead, "i");
  EXPECT_EQ(back.usage.memory_peak_bytes, 4U);
  EXPECT_FALSE(back.usage.processes_peak);
  EXPECT_EQ(back.changes, outcome.changes);
  EXPECT_TRUE(back.appeared[0].is_hidden);
  EXPECT_EQ(back.hazards[0].why, "y");
  EXPECT_EQ(back.changes_left_out, 8U);
  EXPECT_EQ(back.hazards_left_out, 9U);
}

TEST(Record, EveryVerdictIsReadBack) {
  for (const Verdict& verdict :
       {Verdict(Exited{3}), Verdict(Signaled{11}), Verdict(OverBudget{Budget::disk}),
        Verdict(Cancelled{2}), Verdict(Lost{})}) {
    const auto record =
        read_record(record::record_text({}, {.outcome = Outcome{.verdict = verdict}}));
    ASSERT_TRUE(record && record->outcome);
    EXPECT_EQ(record->outcome->verdict, verdict);
  }
  const Error error{.code = "not-found", .message = "m", .hint = "h"};
  const auto failed = read_record(record::record_text({}, {.errors = {error}}));
  ASSERT_TRUE(failed && failed->error && !failed->outcome);
  EXPECT_EQ(failed->error->code, "not-found");
}

TEST(Record, OtherTextsAreNone) {
  for (const char* text : {"", "[]", "{}", "{\"schema\":\"sbx.run/2\"}", "{\"schema\":"})
    EXPECT_FALSE(read_record(text)) << text;
  EXPECT_TRUE(read_record("{\"schema\":\"sbx.run/1\",\"denials\":5,\"usage\":[]}"));
}

TEST(Record, ASetUpFailureSaysWhatWasMissing) {
  const Error error{.kind = ErrorKind::not_found,
                    .code = "not-found",
                    .message = "there is no command 'x'",
                    .hint = "install it"};
  const Json outcome = record_of({.errors = {error}})["outcome"];
  EXPECT_EQ(outcome["status"], "setup-failed");
  EXPECT_EQ(outcome["reason"], "not-found");
  EXPECT_EQ(outcome["hint"], "install it");
  EXPECT_EQ(outcome["exit_code"], nullptr);
}

TEST(Record, ValuesOfVariablesAreNotInThePlan) {
  plan::Plan plan;
  plan.environment = {"TOKEN=hunter2"};
  const policy::Policy policy;
  const run::Answer answer{.policy = policy, .plan = plan};
  EXPECT_THAT(record::plan_text(answer), HasSubstr("TOKEN"));
  EXPECT_THAT(record::plan_text(answer), Not(HasSubstr("hunter2")));
  EXPECT_THAT(record::plan_words(policy, plan), HasSubstr("TOKEN"));
  EXPECT_THAT(record::plan_words(policy, plan), Not(HasSubstr("hunter2")));
}

TEST(Words, AFindingShowsItsLineWithACaretBelowTheToken) {
  const Error error{
      .kind = ErrorKind::policy,
      .code = "unknown-key",
      .message = "unknown key \"limts\"",
      .origin = Origin{.file = "p.toml", .line = 12, .column = 2, .layer = Layer::file},
      .source_line = "\tlimts = 3",
      .hint = "did you mean \"limits\"?"};
  EXPECT_EQ(record::error_text(error, {}),
            "sbx: error[unknown-key]: unknown key \"limts\"\n"
            "  --> p.toml:12:2\n"
            "    |\n"
            " 12 |  limts = 3\n"
            "    |  ^^^^^\n"
            "  help: did you mean \"limits\"?\n");
}

TEST(Words, AnUneventfulRunSaysNothing) {
  EXPECT_EQ(record::outcome_words({}, {}, false, {}), "");
  EXPECT_THAT(record::outcome_words({}, {}, true, {}), HasSubstr("wall"));
}

TEST(Words, DenialsAreBounded) {
  Outcome outcome;
  for (int i = 0; i < 25; ++i)
    outcome.denials.push_back({.kind = DenialKind::syscall,
                               .what = "call" + std::to_string(i),
                               .count = 2,
                               .process = "evil\033[2J"});
  const std::string words = record::outcome_words({}, outcome, false, {});
  EXPECT_THAT(words, HasSubstr("call9 by evil\\x1b[2J, 2 times"));
  EXPECT_THAT(words, Not(HasSubstr("call10")));
  EXPECT_THAT(words, HasSubstr("and 15 more"));
}

TEST(Words, TruncationNamesTheKeyAndWhatIsMissing) {
  plan::Plan plan;
  plan.output.stdout_cap = Bytes{1024};
  plan.output.passed_cap = Bytes{2048};
  Outcome outcome{.out = {.text = "…", .bytes = 3072, .truncated = true, .head_bytes = 1024}};
  EXPECT_EQ(record::outcome_words(plan, outcome, false, {}),
            "sbx: stdout: 3 KiB written, 2 KiB left out (output.stdout = \"1K\")\n");
  outcome.out = {.bytes = 3072, .truncated = true, .head_bytes = 2048};
  EXPECT_EQ(record::outcome_words(plan, outcome, false, {}),
            "sbx: stdout: 3 KiB written, 1 KiB left out (output.passed = \"2K\")\n");
  outcome.out = {.bytes = 3072, .truncated = true, .head_bytes = 100};
  EXPECT_EQ(record::outcome_words(plan, outcome, false, {}), "") << "no cap was the cause";
}

TEST(Completions, OfAProgramWithAnotherNameCallAndCompleteThatOne) {
  EXPECT_EQ(
      for_program("#compdef sbx\n_sbx() { x=$(sbx list); cat /etc/sbx/y; }\ncomplete -F _sbx sbx\n",
                  "gaol-run"),
      "#compdef gaol-run\n_gaol_run() { x=$(gaol-run list); cat /etc/sbx/y; }\n"
      "complete -F _gaol_run gaol-run\n");
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script(completion_script(shell));
    EXPECT_EQ(for_program(script, "sbx"), script);
    EXPECT_THAT(for_program(script, "other"), Not(HasSubstr("_sbx")));
    EXPECT_THAT(for_program(script, "other"), Not(HasSubstr(" sbx ")));
  }
}

}  // namespace
}  // namespace sbx::cli
