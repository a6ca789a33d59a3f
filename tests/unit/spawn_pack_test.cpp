#include <gtest/gtest.h>

#include "spawn/faults.hpp"
#include "spawn/landlock.hpp"
#include "spawn/pack.hpp"

namespace sbx::spawn {
namespace {

namespace landlock = child::landlock;

plan::Mount mount(plan::MountKind kind, std::string source, std::string target, bool read_only) {
  plan::Mount mount;
  mount.kind = kind;
  mount.source = std::move(source);
  mount.target = std::move(target);
  mount.read_only = read_only;
  return mount;
}

plan::Plan small_plan(int landlock_abi) {
  plan::Plan plan;
  plan.landlock_abi = landlock_abi;
  plan.command = {"true"};
  plan.executable = "/usr/bin/true";
  plan.mounts = {mount(plan::MountKind::bind, "/usr", "/usr", true),
                 mount(plan::MountKind::device, "/dev/null", "/dev/null", false),
                 mount(plan::MountKind::scratch, "tmp", "/tmp", false),
                 mount(plan::MountKind::bind, "/srv/notes.txt", "/srv/notes.txt", false)};
  return plan;
}

std::uint64_t rights_on(const Packed& packed, std::string_view path) {
  for (const child::LandlockRule& rule : packed.landlock_rules)
    if (rule.path == path) return rule.rights;
  return 0;
}

TEST(Pack, GivesWritableMountsEveryRightButMakingDevices) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  Packed packed;
  pack(plan, NetworkRequest{}, sources, packed);
  EXPECT_EQ(rights_on(packed, "/tmp"),
            landlock::file_rights(7) & ~(landlock::make_char | landlock::make_block));
  EXPECT_EQ(rights_on(packed, "/"), landlock::execute | landlock::read_file | landlock::read_dir);
  EXPECT_EQ(rights_on(packed, "/usr"), 0U) << "a read-only mount needs no rule of its own";
}

TEST(Pack, GivesAFileNoRightOfFolders) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  Packed packed;
  pack(plan, NetworkRequest{}, sources, packed);
  EXPECT_EQ(rights_on(packed, "/srv/notes.txt") & ~landlock::kRightsOfFile, 0U);
  EXPECT_NE(rights_on(packed, "/srv/notes.txt") & landlock::write_file, 0U);
}

TEST(Pack, AsksNoRightThatAnOldKernelDoesNotKnow) {
  for (const int abi : {1, 2, 3, 4, 5, 6, 7}) {
    const plan::Plan plan = small_plan(abi);
    const std::vector<Source> sources(plan.mounts.size());
    Packed packed;
    pack(plan, NetworkRequest{}, sources, packed);
    for (const child::LandlockRule& rule : packed.landlock_rules) {
      EXPECT_EQ(rule.rights & ~landlock::file_rights(abi), 0U) << rule.path << " at ABI " << abi;
      EXPECT_NE(rule.rights, 0U) << "an empty rule is ENOMSG: " << rule.path;
    }
  }
}

TEST(Pack, MakesNoRulesWithoutLandlock) {
  plan::Plan plan = small_plan(0);
  const std::vector<Source> sources(plan.mounts.size());
  Packed packed;
  pack(plan, NetworkRequest{}, sources, packed);
  EXPECT_TRUE(packed.landlock_rules.empty());
}

TEST(Pack, HandsAFileInByContentWhereItCannotBeMapped) {
  const plan::Plan plan = small_plan(7);
  std::vector<Source> sources(plan.mounts.size());
  sources[3].content = "hello";
  sources[3].by_content = true;
  Packed packed;
  pack(plan, NetworkRequest{}, sources, packed);
  EXPECT_EQ(packed.steps[3].kind, MountKind::file);
  EXPECT_EQ(std::string_view(packed.steps[3].content, packed.steps[3].content_size), "hello");
  EXPECT_EQ(packed.steps[0].kind, MountKind::bind);
}

TEST(Pack, NamesTargetsRelativeToTheNewRoot) {
  const plan::Plan plan = small_plan(7);
  const std::vector<Source> sources(plan.mounts.size());
  Packed packed;
  pack(plan, NetworkRequest{}, sources, packed);
  for (const child::Step& step : packed.steps) EXPECT_NE(step.target[0], '/');
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
