#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "plan/files/reach.hpp"
#include "spawn/faults.hpp"
#include "spawn/landlock.hpp"
#include "spawn/pack.hpp"

namespace sbx::spawn {
namespace {

namespace landlock = child::landlock;

plan::Plan small_plan(int landlock_abi) {
  plan::Plan plan;
  plan.landlock_abi = landlock_abi;
  plan.command = {"true"};
  plan.executable = "/usr/bin/true";
  plan.mounts = {
      {.target = "/usr", .payload = plan::mount::Bind{.source = {.path = "/usr"}}},
      {.target = "/dev/null",
       .payload = plan::mount::Device{"/dev/null"},
       .rights = {.execute = false, .write = true}},
      {.target = "/tmp", .payload = plan::mount::Scratch{"tmp"}, .rights = plan::kWritable},
      {.target = "/srv/notes.txt",
       .payload = plan::mount::Bind{.source = {.path = "/srv/notes.txt"}},
       .rights = plan::kWritable}};
  plan.access = plan::reached_through(plan.mounts);
  return plan;
}

const NetworkRequest kNoNetwork;

Block pack(const plan::Plan& plan, const std::vector<Source>& sources) {
  return spawn::pack(plan, {.network = kNoNetwork, .sources = sources});
}

std::span<const child::LandlockRule> rules_of(const Block& block) {
  const child::Program& program = program_of(block);
  return {program.landlock_rules.get(), program.landlock_rule_count};
}

std::span<const child::Step> steps_of(const Block& block) {
  const child::Program& program = program_of(block);
  return {program.steps.get(), program.step_count};
}

std::uint64_t rights_on(const Block& packed, std::string_view path) {
  for (const child::LandlockRule& rule : rules_of(packed))
    if (rule.path.get() == path) return rule.rights;
  return 0;
}

TEST(Pack, GivesWritableMountsEveryRightButMakingDevices) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  const Block packed = pack(plan, sources);
  EXPECT_EQ(rights_on(packed, "/tmp"),
            landlock::file_rights(7) & ~(landlock::make_char | landlock::make_block));
  EXPECT_EQ(rights_on(packed, "/"), landlock::execute | landlock::read_file | landlock::read_dir);
  EXPECT_EQ(rights_on(packed, "/usr"), 0U) << "a read-only mount needs no rule of its own";
}

TEST(Pack, GivesAFileNoRightOfDirectories) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  const Block packed = pack(plan, sources);
  EXPECT_EQ(rights_on(packed, "/srv/notes.txt") & ~landlock::kRightsOfFile, 0U);
  EXPECT_NE(rights_on(packed, "/srv/notes.txt") & landlock::write_file, 0U);
}

TEST(Pack, GivesWhatIsHeldOrListedNoOtherRight) {
  plan::Plan plan = small_plan(7);
  plan.access = {{.path = "/held", .rights = plan::kWritable, .holds_only = true},
                 {.path = "/listed", .rights = plan::kWritable, .lists_only = true}};
  const std::vector<Source> sources(plan.mounts.size());
  const Block packed = pack(plan, sources);
  EXPECT_EQ(rights_on(packed, "/held"), landlock::execute);
  EXPECT_EQ(rights_on(packed, "/listed"), landlock::read_dir);
}

TEST(Pack, AsksNoRightThatAnOldKernelDoesNotKnow) {
  for (const int abi : {1, 2, 3, 4, 5, 6, 7}) {
    const plan::Plan plan = small_plan(abi);
    const std::vector<Source> sources(plan.mounts.size());
    const Block packed = pack(plan, sources);
    for (const child::LandlockRule& rule : rules_of(packed)) {
      EXPECT_EQ(rule.rights & ~landlock::file_rights(abi), 0U)
          << rule.path.get() << " at ABI " << abi;
      EXPECT_NE(rule.rights, 0U) << "an empty rule is ENOMSG: " << rule.path;
    }
  }
}

TEST(Pack, MakesNoRulesWithoutLandlock) {
  plan::Plan plan = small_plan(0);
  const std::vector<Source> sources(plan.mounts.size());
  const Block packed = pack(plan, sources);
  EXPECT_TRUE(rules_of(packed).empty());
}

TEST(Pack, HandsAFileInByContentWhereItCannotBeMapped) {
  const plan::Plan plan = small_plan(7);
  std::vector<Source> sources(plan.mounts.size());
  sources[3].content = "hello";
  sources[3].by_content = true;
  const Block packed = pack(plan, sources);
  const auto steps = steps_of(packed);
  EXPECT_EQ(steps[3].kind, MountKind::file);
  EXPECT_EQ(std::string_view(steps[3].content.get(), steps[3].content_size), "hello");
  EXPECT_EQ(steps[0].kind, MountKind::bind);
}

TEST(Pack, NamesTargetsRelativeToTheNewRoot) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  const Block packed = pack(plan, sources);
  for (const child::Step& step : steps_of(packed)) EXPECT_NE(step.target[0], '/');
}

/// Every text that the program leads to.
std::vector<std::string> texts_of(const child::Program& program) {
  std::vector<std::string> texts{program.executable.get(), program.working_directory.get(),
                                 program.scratch_size.get(), program.argv.texts.get()};
  for (std::size_t i = 0; i < program.step_count; ++i) {
    texts.emplace_back(program.steps[i].source.get());
    texts.emplace_back(program.steps[i].target.get());
  }
  for (std::size_t i = 0; i < program.landlock_rule_count; ++i)
    texts.emplace_back(program.landlock_rules[i].path.get());
  return texts;
}

TEST(Pack, TheBlockMeansTheSameAtAnyAddress) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  Block block = pack(plan, sources);
  const auto expected = texts_of(program_of(block));
  EXPECT_THAT(expected, testing::Contains("/srv/notes.txt"));
  const auto bytes = block.bytes();
  std::vector<std::max_align_t> other(bytes.size() / sizeof(std::max_align_t) + 1);
  std::memcpy(other.data(), bytes.data(), bytes.size());
  std::ranges::fill(
      std::span(reinterpret_cast<std::byte*>(&block[Placed<child::Program>{}]), bytes.size()),
      std::byte{0xff});
  EXPECT_EQ(texts_of(*reinterpret_cast<const child::Program*>(other.data())), expected);
}

TEST(Pack, NothingOfThePlanIsPointedTo) {
  auto plan = std::make_unique<plan::Plan>(small_plan(7));
  const std::vector<Source> sources(plan->mounts.size());
  const Block block = pack(*plan, sources);
  const auto expected = texts_of(program_of(block));
  plan.reset();
  EXPECT_EQ(texts_of(program_of(block)), expected);
}

TEST(Pack, TheSealedFileTakesNoChange) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  const Block block = pack(plan, sources);
  const auto sealed = block.seal();
  ASSERT_TRUE(sealed);
  EXPECT_EQ(::pwrite(sealed->get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(sealed->get(), 0), -1);
  std::vector<std::byte> back(block.bytes().size());
  ASSERT_EQ(::pread(sealed->get(), back.data(), back.size(), 0), static_cast<ssize_t>(back.size()));
  EXPECT_TRUE(std::ranges::equal(back, block.bytes()));
}

TEST(Stages, HaveNamesThatTellThemApart) {
  for (const StageFacts& facts : stages()) {
    EXPECT_EQ(stage_name(facts.stage), facts.name);
    EXPECT_TRUE(facts.kind == "protection" || facts.kind == "construction") << facts.name;
    EXPECT_FALSE(facts.meaning.empty());
  }
}

}  // namespace
}  // namespace sbx::spawn
