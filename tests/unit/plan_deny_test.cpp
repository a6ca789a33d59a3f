#include "plan/files/deny.hpp"

#include "plan/files/survey.hpp"
#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Origin kBuiltin{.layer = Layer::builtin};
const Origin kUsers{.file = "p.toml", .line = 1, .layer = Layer::file};

class Deny : public testing::Test {
 protected:
  host::CannedHost canned;
  static constexpr const char* kDirectory = "/home/me/project";

  static bool hides(const char* pattern, std::string_view directory, std::string_view name) {
    return DenyRules({{pattern, kUsers}}).hides(directory, name) != nullptr;
  }
  Survey surveyed(const char* pattern) {
    const Grant grant{.kind = GrantKind::copy,
                      .source = kDirectory,
                      .target = kDirectory,
                      .facts = *canned.files->look(kDirectory)};
    auto found = survey(canned.host, grant, DenyRules({{pattern, kBuiltin}}, canned.files.get()),
                        {.value = 1000});
    EXPECT_TRUE(found.has_value());
    return found ? std::move(*found) : Survey();
  }
  static std::vector<std::string> names(const Survey& found) {
    std::vector<std::string> paths;
    for (const Hidden& each : found.hidden) paths.push_back(each.path);
    return paths;
  }
};

TEST_F(Deny, PatternsMeanNamesAnywhereOrPaths) {
  EXPECT_TRUE(hides("**/.env", "/a/b", ".env"));
  EXPECT_FALSE(hides("**/.env", "/a/b", ".env2"));
  EXPECT_TRUE(hides("**/.env.*", "/", ".env.local"));
  EXPECT_TRUE(hides("/a/*.pem", "/a", "key.pem"));
  EXPECT_FALSE(hides("/a/*.pem", "/a/b", "key.pem"));
  EXPECT_TRUE(hides("/a/**", "/a/b", "c"));
  EXPECT_FALSE(hides("/a/**", "/", "a"));
}

TEST_F(Deny, WhatLiesBelowAHiddenNameIsCovered) {
  const DenyRules denials({{"**/.ssh", kUsers}, {"/srv/key", kUsers}});
  EXPECT_NE(denials.covers("/home/me/.ssh/id"), nullptr);
  EXPECT_EQ(denials.covers("/home/me/ssh/id"), nullptr);
  EXPECT_NE(denials.covers_literally("/srv/key/a"), nullptr);
  EXPECT_EQ(denials.covers_literally("/home/me/.ssh"), nullptr);
}

TEST_F(Deny, AVirtualEnvironmentOfThatNameIsNoSecret) {
  canned.files->directory("/srv/w/.env/bin").file("/srv/w/.env/pyvenv.cfg", "home = /usr/bin");
  canned.files->directory("/srv/x/.env").file("/srv/x/.env/production", "s3cr3t");
  canned.files->file("/srv/y/.env", "s3cr3t").link("/srv/z/.env", "/srv/w/.env");
  const DenyRules builtin({{"**/.env", kBuiltin}}, canned.files.get());
  EXPECT_EQ(builtin.hides("/srv/w", ".env"), nullptr);
  EXPECT_EQ(builtin.covers("/srv/w/.env/bin"), nullptr);
  for (const char* directory : {"/srv/x", "/srv/y", "/srv/z"})
    EXPECT_NE(builtin.hides(directory, ".env"), nullptr) << directory;
  EXPECT_NE(DenyRules({{"**/.env", kUsers}}, canned.files.get()).hides("/srv/w", ".env"), nullptr);
  EXPECT_NE(DenyRules({{"**/.env", kBuiltin}}).hides("/srv/w", ".env"), nullptr);
}

TEST_F(Deny, ASurveyFindsWhatMustBeKnown) {
  canned.files->file("/home/me/project/.env", "s").file("/home/me/project/a/.env", "s");
  canned.files->file("/home/me/project/.git/config", "").directory("/home/me/project/.git/hooks");
  canned.files->file("/home/me/project/tree/.git", "gitdir: x").file("/home/me/project/x", "1");
  canned.files->hard_link("/home/me/project/y", "/home/me/project/x");
  canned.files->special("/home/me/project/s", host::FileType::socket);
  const Survey found = surveyed("**/.env");
  EXPECT_THAT(names(found), UnorderedElementsAre(".env", "a/.env"));
  EXPECT_THAT(found.protected_, UnorderedElementsAre(".git/config", ".git/hooks", "tree/.git"));
  EXPECT_THAT(found.git_settings, ElementsAre(".git/config"));
  EXPECT_THAT(found.sockets, ElementsAre("s"));
  EXPECT_EQ(found.linked.size(), 2U);
  EXPECT_EQ(found.foreign, "");
}

TEST_F(Deny, ASurveyNamesAForeignOwnerAndWhatItCannotLookInto) {
  canned.files->file("/home/me/project/theirs", "").owner("/home/me/project/theirs", 1234, 99);
  canned.files->directory("/home/me/project/closed").shut("/home/me/project/closed");
  const Survey found = surveyed("**/.env");
  EXPECT_EQ(found.foreign, "theirs");
  EXPECT_THAT(names(found), ElementsAre("closed"));
}

TEST_F(Deny, ASurveyTellsHowFarItIs) {
  for (int i = 0; i < 2100; ++i) canned.files->file("/home/me/project/f" + std::to_string(i), "");
  std::vector<std::uint64_t> told;
  canned.host.on_walk = [&told](const std::string& directory, std::uint64_t entries) {
    EXPECT_EQ(directory, kDirectory);
    told.push_back(entries);
  };
  const Grant grant{
      .source = kDirectory, .target = kDirectory, .facts = *canned.files->look(kDirectory)};
  EXPECT_TRUE(survey(canned.host, grant, DenyRules({}), {.value = 4000}).has_value());
  EXPECT_THAT(told, ElementsAre(1024, 2048, 0));
}

TEST_F(Deny, ASurveyEndsWithAnErrorBeyondItsMost) {
  for (int i = 0; i < 5; ++i) canned.files->file("/home/me/project/f" + std::to_string(i), "");
  const Grant grant{
      .source = kDirectory, .target = kDirectory, .facts = *canned.files->look(kDirectory)};
  EXPECT_EQ(survey(canned.host, grant, DenyRules({}), {.value = 4}).error().code,
            "too-many-entries");
  EXPECT_TRUE(survey(canned.host, grant, DenyRules({}), {.value = 5}).has_value());
  const auto hint = [&](const Origin& origin) {
    return survey(canned.host, grant, DenyRules({}), {.value = 4, .origin = origin}).error().hint;
  };
  EXPECT_THAT(hint({.file = "default.toml", .line = 55, .layer = Layer::builtin}),
              testing::HasSubstr("--set filesystem.scan=8"));
  EXPECT_THAT(hint({.file = "/p.toml", .line = 5, .layer = Layer::file}),
              testing::HasSubstr("raise filesystem.scan (/p.toml:5)"));
}

TEST_F(PlanTest, AGuardHidesByALayerOrByMasks) {
  canned.files->file("/home/me/project/src/.env", "s").directory("/home/me/project/src/.ssh");
  set("filesystem.workspace.mode", "\"overlay\"");
  Plan decided = plan();
  std::vector<std::string> veils;
  for (const Veil& veil : step_at(decided, "/home/me/project")->layered()->veils)
    veils.push_back(veil.path);
  for (const char* name : {"src", "src/.env", "src/.ssh", ".env", ".ssh", ".env.local"})
    EXPECT_THAT(veils, testing::Contains(name));
  EXPECT_THAT(veils, testing::Not(testing::Contains(".env.x")));
  EXPECT_THAT(decided.live, IsEmpty());
  set("filesystem.workspace.mode", "\"read-write\"");
  decided = plan();
  EXPECT_THAT(decided, HasStep(MountKind::content, "/home/me/project/src/.env"));
  EXPECT_THAT(decided, HasStep(MountKind::mask_directory, "/home/me/project/src/.ssh"));
  EXPECT_THAT(decided, HasStep(MountKind::pinned, "/home/me/project/src"));
  ASSERT_EQ(decided.live.size(), 1U);
  EXPECT_THAT(decided.live.front().guarded, ElementsAre("src/.env", "src/.ssh"));
}

/// What an overlay copies up, or can't: by their names.
std::vector<std::string> names_of_linked(const Plan& decided) {
  std::vector<std::string> all;
  for (const LinkedFile& file : step_at(decided, "/home/me/project")->layered()->linked)
    all.insert(all.end(), file.names.begin(), file.names.end());
  return all;
}
std::vector<std::string> reasons_of_unlinked(const Plan& decided) {
  std::vector<std::string> all;
  for (const Degraded& each : decided.degraded)
    if (each.why.contains("several names")) all.push_back(each.why);
  return all;
}

TEST_F(PlanTest, NamesOfOneFileStayTogetherInAWritableOverlay) {
  const std::string work = "/home/me/project/";
  canned.files->directory(work + "d");
  canned.files->file(work + "a", "x").hard_link(work + "d/b", work + "a");
  canned.files->file(work + ".env", "s").hard_link(work + "d/c", work + ".env");
  canned.files->file("/srv/store", "x").hard_link(work + "stored", "/srv/store");
  for (const char* mode : {"\"read-only\"", "\"read-write\"", "\"overlay\""}) {
    set("filesystem.workspace.mode", mode);
    const Plan decided = plan();
    EXPECT_THAT(reasons_of_unlinked(decided), IsEmpty()) << mode;
    if (const Mount* step = step_at(decided, "/home/me/project"); step->layered() != nullptr) {
      if (step->read_only())
        EXPECT_THAT(names_of_linked(decided), IsEmpty());
      else
        EXPECT_THAT(names_of_linked(decided), ElementsAre("a", "d/b"));
    }
  }
}

TEST_F(PlanTest, OwnStateIsNotSearchedForOtherNamesOfHiddenFiles) {
  canned.files->file("/home/me/project/a", "x")
      .hard_link("/home/me/project/b", "/home/me/project/a");
  canned.files->directory("/home/me/.local/state/sbx/changes/set/contents");
  canned.files->directory("/home/me/.ssh");
  for (const char* grants : {"[]", "[\"~/.local\"]"}) {
    canned.files->walked.clear();
    policy = policy_with({{"filesystem.workspace.mode", "\"overlay\""},
                          {"filesystem.read", grants},
                          {"filesystem.deny", "[\"~/.ssh\"]"}});
    (void)plan();
    EXPECT_THAT(canned.files->walked, testing::Contains("/home/me/.ssh")) << grants;
    EXPECT_THAT(canned.files->walked, testing::Not(testing::Contains("/home/me/.local/state/sbx")))
        << grants;
  }
}

TEST_F(PlanTest, WhatCantStayTogetherIsNamed) {
  const std::string work = "/home/me/project/";
  canned.files->file(work + "s", "x", 04755).hard_link(work + "s2", work + "s");
  canned.files->file(work + "t", "x").hard_link(work + "t2", work + "t");
  canned.files->file(work + "u", "x").hard_link(work + "u2", work + "u").shut(work + "u");
  set("filesystem.workspace.mode", "\"overlay\"");
  const Plan decided = plan();
  EXPECT_THAT(names_of_linked(decided), ElementsAre("t", "t2"));
  EXPECT_EQ(step_at(decided, "/home/me/project")->layered()->unlinked.size(), 2U);
  EXPECT_THAT(reasons_of_unlinked(decided),
              ElementsAre(testing::AllOf(testing::HasSubstr("'s' has several names"),
                                         testing::HasSubstr("the same holds for 1 more"))));
}

}  // namespace
}  // namespace sbx::plan
