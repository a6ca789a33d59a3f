#include "policy/compare.hpp"
#include "policy/narrowing.hpp"
#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> words_of(std::string_view first, std::string_view second,
                                  Direction direction) {
  std::vector<std::string> list;
  for (const Difference& each : compare(parsed(first), parsed(second)))
    if (each.direction == direction) list.push_back(std::string(each.key->name) + " " + each.words);
  return list;
}

TEST(PolicyCompare, SaysNothingOfTheSame) {
  for (const Builtin& one : builtins()) {
    const auto policy = load({{std::string(one.name)}}, {}, plain_context());
    ASSERT_TRUE(policy);
    EXPECT_THAT(compare(*policy, *policy), IsEmpty());
  }
}

TEST(PolicyCompare, FollowsTheOrderOfTheKey) {
  EXPECT_THAT(words_of("", "[limits]\nmemory = \"2G\"", Direction::wider),
              testing::ElementsAre("limits.memory \"2G\" instead of \"256M\""));
  EXPECT_THAT(words_of("", "[network]\nmatch_sni = false", Direction::wider), SizeIs(1));
  EXPECT_THAT(words_of("", "locked = true", Direction::narrower), SizeIs(1));
  EXPECT_THAT(words_of("", "[filesystem]\ndeny = [\"**/x\"]", Direction::narrower), SizeIs(1));
  EXPECT_THAT(words_of("[filesystem]\ndeny = [\"**/x\"]", "", Direction::wider), SizeIs(1));
  EXPECT_THAT(words_of("", "[interpreters]\nallow = [\"sh\"]", Direction::narrower),
              testing::ElementsAre("interpreters.allow only \"sh\""));
  EXPECT_THAT(words_of("[interpreters]\nallow = [\"sh\"]", "", Direction::wider),
              testing::ElementsAre("interpreters.allow any"));
  EXPECT_THAT(words_of("", "[environment]\nset = { A = \"b\" }", Direction::different),
              testing::ElementsAre("environment.set also A = \"b\""));
}

TEST(PolicyCompare, NoSumOfCpuTimeIsWiderThanAnySum) {
  constexpr std::string_view kHour = "[session]\ncpu_time = \"1h\"";
  EXPECT_THAT(words_of(kHour, "", Direction::wider),
              testing::ElementsAre("session.cpu_time \"0s\" instead of \"1h\""));
  EXPECT_THAT(words_of("", kHour, Direction::narrower), SizeIs(1));
  EXPECT_THAT(words_of(kHour, "[session]\ncpu_time = \"2h\"", Direction::wider), SizeIs(1));
}

TEST(PolicyCompare, AGrantThatAllowsSpecialFilesIsTheWiderOne) {
  constexpr std::string_view kPlain = "[filesystem]\nwrite = [\"/srv\"]";
  constexpr std::string_view kSpecial =
      "[filesystem]\nwrite = [{ source = \"/srv\", special = true }]";
  EXPECT_THAT(words_of(kPlain, kSpecial, Direction::wider), SizeIs(1));
  EXPECT_THAT(words_of(kPlain, kSpecial, Direction::narrower), IsEmpty());
  EXPECT_THAT(words_of(kSpecial, kPlain, Direction::narrower), SizeIs(1));
  EXPECT_THAT(words_of(kSpecial, kPlain, Direction::wider), IsEmpty());
}

TEST(PolicyCompare, ReversesWithItsSides) {
  constexpr std::string_view kOther =
      "[filesystem]\nread = [\"/srv\"]\n[limits]\ncpus = 3.0\n[output]\nexceed = \"kill\"";
  EXPECT_EQ(words_of("", kOther, Direction::wider).size(),
            words_of(kOther, "", Direction::narrower).size());
  EXPECT_EQ(words_of("", kOther, Direction::narrower).size(),
            words_of(kOther, "", Direction::wider).size());
}

/// For all pairs: a value that a lock rejects is reported as wider or different here.
TEST(PolicyCompare, AgreesWithLocks) {
  for (const Builtin& one : builtins()) {
    for (const Builtin& other : builtins()) {
      const auto first = load({{std::string(one.name)}}, {}, plain_context());
      const auto second = load({{std::string(other.name)}}, {}, plain_context());
      ASSERT_TRUE(first && second);
      bool widens = false;
      for (const Difference& each : compare(*first, *second))
        widens = widens || each.direction != Direction::narrower;
      EXPECT_EQ(widens, !widenings({*first, {}}, *second, {}).empty())
          << one.name << " " << other.name;
    }
  }
}

}  // namespace
}  // namespace sbx::policy
