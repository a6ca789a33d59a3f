#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kProject = "/home/me/project";

TEST_F(PlanTest, AnEmptyWorkspaceIsAPrivateDirectoryAtTheSamePath) {
  const Plan decided = plan();
  EXPECT_EQ(decided.working_directory, kProject);
  ASSERT_THAT(decided, HasStep(MountKind::scratch, kProject));
  EXPECT_EQ(step_at(decided, kProject)->source(), "work");
  EXPECT_THAT(decided.notes, IsEmpty());
}

TEST_F(PlanTest, EachModeHasItsStep) {
  set("filesystem.workspace.mode", "\"overlay\"");
  Plan decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::overlay, kProject));
  EXPECT_FALSE(step_at(decided, kProject)->read_only());
  set("filesystem.workspace.mode", "\"read-only\"");
  decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::overlay, kProject));
  EXPECT_TRUE(step_at(decided, kProject)->read_only());
  set("filesystem.workspace.mode", "\"read-write\"");
  decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::bind, kProject));
  EXPECT_FALSE(step_at(decided, kProject)->read_only());
}

class WorktreeTest : public PlanTest {
 protected:
  static constexpr const char* kRepository = "/home/me/main/.git";
  WorktreeTest() {
    set("filesystem.workspace.mode", "\"overlay\"");
    canned.files->file("/home/me/project/.git", "gitdir: /home/me/main/.git/worktrees/project\n")
        .file("/home/me/main/.git/worktrees/project/gitdir", "/home/me/project/.git\n")
        .file("/home/me/main/.git/worktrees/project/commondir", "../..\n")
        .file("/home/me/main/.git/HEAD", "ref: refs/heads/main\n")
        .directory("/home/me/main/.git/objects")
        .directory("/home/me/main/.git/refs");
  }
};

TEST_F(WorktreeTest, ItsRepositoryIsShownReadOnly) {
  const Plan decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::overlay, kRepository));
  EXPECT_TRUE(step_at(decided, kRepository)->read_only());
}

TEST_F(WorktreeTest, AnEmptyWorkspaceNeedsNone) {
  set("filesystem.workspace.mode", "\"empty\"");
  EXPECT_EQ(step_at(plan(), kRepository), nullptr);
}

TEST_F(WorktreeTest, ARepositoryThatDoesNotNameTheWorktreeIsNotShown) {
  canned.files->file("/home/me/main/.git/worktrees/project/gitdir", "/home/me/other/.git\n");
  EXPECT_EQ(step_at(plan(), kRepository), nullptr);
}

TEST_F(WorktreeTest, ADirectoryThatIsNoRepositoryIsNotShown) {
  for (const char* common : {"../../..", "..", "/home/me"}) {
    canned.files->file("/home/me/main/.git/worktrees/project/commondir", common);
    const Plan decided = plan();
    for (const char* place : {kRepository, "/home/me", "/home/me/main"})
      EXPECT_EQ(step_at(decided, place), nullptr) << common << ' ' << place;
  }
}

TEST_F(WorktreeTest, ALinkInItsPlaceIsNotFollowed) {
  canned.files->file("/home/me/dot-git", "gitdir: /home/me/main/.git/worktrees/project\n")
      .link("/home/me/project/.git", "/home/me/dot-git");
  EXPECT_EQ(step_at(plan(), kRepository), nullptr);
}

TEST_F(PlanTest, GitInASubdirectoryIsToldTheOption) {
  set("filesystem.workspace.mode", "\"overlay\"");
  canned.files->program("/usr/bin/git")
      .directory("/home/me/project/.git")
      .directory("/home/me/project/src/deep");
  EXPECT_THAT(plan({"git", "status"}).notes, IsEmpty());
  canned.host.working_directory = "/home/me/project/src/deep";
  EXPECT_THAT(plan({"true"}).notes, IsEmpty());
  EXPECT_THAT(
      plan({"git", "status"}).notes,
      ElementsAre("the program does not see the git repository '/home/me/project'; to share "
                  "it copy-on-write, add --workspace ../..:overlay"));
  policy = policy_with(
      {{"filesystem.workspace.source", "\"../..\""}, {"filesystem.workspace.mode", "\"overlay\""}});
  EXPECT_THAT(plan({"git", "status"}).notes, IsEmpty());
}

TEST_F(PlanTest, ADirectoryThatIsNoProjectGivesAnEmptyOneAndALine) {
  set("filesystem.workspace.mode", "\"overlay\"");
  for (const char* directory : {"/", "/tmp", "/home/me", "/home", "/etc", ""}) {
    canned.host.working_directory = directory;
    const Plan decided = plan();
    EXPECT_EQ(decided.working_directory, "/work") << directory;
    EXPECT_THAT(decided, HasStep(MountKind::scratch, "/work"));
    ASSERT_EQ(decided.notes.size(), 1U) << directory;
    EXPECT_THAT(decided.notes.front(), HasSubstr("/work"));
  }
}

TEST_F(PlanTest, ADirectoryThatCannotBeReadGivesAnEmptyOne) {
  canned.files->shut(kProject);
  EXPECT_EQ(plan().working_directory, "/work");
}

TEST_F(PlanTest, TheHomeIsKnownThroughItsLinks) {
  canned.files->directory("/data/me").link("/homelink", "/data/me");
  canned.host.home = "/homelink";
  canned.host.working_directory = "/data/me";
  EXPECT_EQ(plan().working_directory, "/work");
}

TEST_F(PlanTest, TheSameDirectoriesNamedExplicitlyAreErrors) {
  canned.host.working_directory = "/home/me";
  set("filesystem.workspace.source", "\".\"");
  EXPECT_EQ(error().code, "unfit-workspace");
  EXPECT_EQ(error().kind, ErrorKind::policy);
  canned.host.working_directory = kProject;
  policy = policy_with(
      {{"filesystem.workspace.source", "\".\""}, {"filesystem.workspace.mode", "\"overlay\""}});
  EXPECT_EQ(plan().working_directory, kProject);
}

TEST_F(PlanTest, ANamedWorkspaceIsRelativeToTheWorkingDirectory) {
  canned.files->directory("/home/me/project/sub").directory("/srv/w");
  policy = policy_with(
      {{"filesystem.workspace.source", "\"sub\""}, {"filesystem.workspace.mode", "\"overlay\""}});
  EXPECT_EQ(plan().working_directory, "/home/me/project/sub");
  policy = policy_with({{"filesystem.workspace.source", "\"/srv/w\""},
                        {"filesystem.workspace.mode", "\"overlay\""}});
  EXPECT_THAT(plan(), HasStep(MountKind::overlay, "/srv/w"));
}

TEST_F(PlanTest, BelowTheWorkspaceTheWorkingDirectoryIsKept) {
  canned.files->directory("/srv/w/deep");
  canned.host.working_directory = "/srv/w/deep";
  policy = policy_with(
      {{"filesystem.workspace.source", "\"..\""}, {"filesystem.workspace.mode", "\"overlay\""}});
  EXPECT_EQ(plan().working_directory, "/srv/w/deep");
  policy = policy_with(
      {{"filesystem.workspace.source", "\"..\""}, {"filesystem.workspace.mode", "\"empty\""}});
  const Plan empty = plan();
  EXPECT_EQ(empty.working_directory, "/srv/w/deep");
  EXPECT_THAT(empty, HasStep(MountKind::directory, "/srv/w/deep"));
}

TEST_F(PlanTest, ANamedWorkspaceThatThePolicyLeavesEmptyIsAnErrorWithTheModeThatShowsIt) {
  set("filesystem.workspace.source", "\".\"");
  EXPECT_EQ(error().code, "no-workspace-mode");
  EXPECT_THAT(error().hint, HasSubstr("--workspace DIR:overlay"));
  policy = policy_with(
      {{"filesystem.workspace.source", "\".\""}, {"filesystem.workspace.mode", "\"empty\""}});
  EXPECT_THAT(plan(), HasStep(MountKind::scratch, kProject));
}

TEST_F(PlanTest, AMissingWorkspaceIsAnError) {
  set("filesystem.workspace.source", "\"missing\"");
  EXPECT_EQ(error().code, "missing-workspace");
  canned.files->file("/home/me/project/file");
  set("filesystem.workspace.source", "\"file\"");
  EXPECT_EQ(error().code, "unfit-workspace");
}

TEST_F(PlanTest, AGrantThatShowsTheWorkingDirectoryWinsOverTheEmptyDirectory) {
  set("filesystem.read", R"(["."])");
  EXPECT_THAT(plan(), HasStep(MountKind::overlay, kProject));
  canned.files->directory("/srv/a/b");
  canned.host.working_directory = "/srv/a/b";
  set("filesystem.read", R"(["/srv/a"])");
  const Plan decided = plan();
  EXPECT_EQ(decided.working_directory, "/srv/a/b");
  EXPECT_EQ(step_at(decided, "/srv/a/b"), nullptr);
}

TEST_F(PlanTest, AScriptInTheWorkspaceNeedsNoStep) {
  canned.files->file("/home/me/project/job.py", "");
  set("filesystem.workspace.mode", "\"overlay\"");
  EXPECT_EQ(step_at(plan({"job.py"}), "/home/me/project/job.py"), nullptr);
}

TEST_F(PlanTest, AScriptIsShownAloneInAnEmptyWorkspace) {
  canned.files->file("/home/me/project/job.py", "").file("/home/me/project/other.py", "");
  const Plan decided = plan({"job.py"});
  ASSERT_THAT(decided, HasStep(MountKind::bind, "/home/me/project/job.py"));
  EXPECT_TRUE(step_at(decided, "/home/me/project/job.py")->read_only());
  EXPECT_LT(position_of(decided, kProject), position_of(decided, "/home/me/project/job.py"));
  EXPECT_EQ(step_at(decided, "/home/me/project/other.py"), nullptr);
}

TEST_F(PlanTest, AScriptOutsideIsShownAtItsRealPath) {
  canned.files->file("/srv/real/job.py", "").link("/home/me/project/link.py", "/srv/real/job.py");
  const Plan decided = plan({"../../../srv/real/job.py"});
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/srv/real/job.py"));
  EXPECT_THAT(decided.command, ElementsAre("python3", "../../../srv/real/job.py"));
}

TEST_F(PlanTest, ALinkOutOfTheProjectIsNotFollowedUnasked) {
  canned.files->file("/srv/real/job.py", "")
      .link("/home/me/project/link.py", "/srv/real/job.py")
      .link("/home/me/project/up.py", "../other/job.py")
      .file("/home/me/other/job.py", "")
      .link("/home/me/project/own.py", "job.py")
      .file("/home/me/project/job.py", "");
  for (const char* mode : {"\"empty\"", "\"overlay\""}) {
    set("filesystem.workspace.mode", mode);
    for (const char* link : {"link.py", "./link.py", "up.py", "/home/me/project/link.py"})
      EXPECT_EQ(error({link}).code, "link-leads-out") << link;
    plan({"own.py"});
  }
  plan({"/srv/real/job.py"});
  set("filesystem.read", R"(["/srv/real"])");
  plan({"link.py"});
}

TEST_F(PlanTest, ANameThatGoesThroughADirectoryWhichIsNotShownIsReplaced) {
  canned.files->file("/home/me/project/job.py", "").directory("/home/me/project/sub");
  EXPECT_THAT(plan({"sub/../job.py"}).command, ElementsAre("python3", "/home/me/project/job.py"));
  EXPECT_THAT(plan({"./job.py"}).command, ElementsAre("python3", "./job.py"));
}

TEST_F(PlanTest, ALinkInAShownWorkspaceIsKeptAsTyped) {
  canned.files->file("/srv/real/job.py", "").link("/home/me/project/link.py", "/srv/real/job.py");
  policy = policy_with({{"filesystem.workspace.mode", "\"overlay\""},
                        {"filesystem.read", "[\"/srv/real/job.py\"]"}});
  const Plan decided = plan({"./link.py"});
  EXPECT_THAT(decided.command, ElementsAre("python3", "./link.py"));
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/srv/real/job.py"));
}

TEST_F(PlanTest, AScriptOfTheHomeRunsFromTheEmptyDirectory) {
  canned.files->file("/home/me/job.py", "");
  canned.host.working_directory = "/home/me";
  const Plan decided = plan({"job.py"});
  EXPECT_EQ(decided.working_directory, "/work");
  EXPECT_THAT(decided.command, ElementsAre("python3", "/home/me/job.py"));
}

TEST_F(PlanTest, AnEmptyDirectoryNeverCoversTheSystem) {
  canned.files->directory("/usr/share/doc").directory("/usr/src/app");
  canned.host.working_directory = "/usr/share/doc";
  EXPECT_EQ(plan().working_directory, "/work");
  canned.host.working_directory = "/usr/src/app";
  const Plan decided = plan();
  EXPECT_EQ(decided.working_directory, "/usr/src/app");
  EXPECT_THAT(decided, HasStep(MountKind::scratch, "/usr/src/app"));
}

TEST_F(PlanTest, PolicyFilesAreReadOnlyInACopyToo) {
  canned.files->file("/home/me/project/p.toml");
  policy = policy_with({{"filesystem.workspace.mode", "\"overlay\""}});
  policy.files = {"/home/me/project/p.toml"};
  EXPECT_THAT(plan(), HasStep(MountKind::read_only, "/home/me/project/p.toml"));
  policy = policy_with({{"filesystem.workspace.mode", "\"read-only\""}});
  policy.files = {"/home/me/project/p.toml"};
  EXPECT_EQ(step_at(plan(), "/home/me/project/p.toml"), nullptr);
}

}  // namespace
}  // namespace sbx::plan
