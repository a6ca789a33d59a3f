#include "plan/files/inputs.hpp"
#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::HasSubstr;

RunRequest with(std::vector<Input> inputs) {
  RunRequest asked = request({"true"});
  asked.inputs = std::move(inputs);
  return asked;
}

class Inputs : public PlanTest {
 protected:
  Inputs() {
    canned.files->file("/srv/data.csv", "1,2", 0440).file("/srv/tool", "#!", 0755);
    canned.files->file("/home/me/project/old", "").directory("/home/me/project/sub");
    canned.files->link("/home/me/project/link", "/srv");
  }
  void overlay() { set("filesystem.workspace.mode", "\"overlay\""); }
  /// The file's path inside.
  std::string placed(const std::string& target) {
    const Plan decided = plan(with({{"/srv/data.csv", target}}));
    for (const Mount& step : decided.mounts)
      if (step.kind() == MountKind::file && content_of(step) == "1,2") return step.target;
    return "nowhere";
  }
  std::string refused(const std::string& target) {
    const Error failure = error(with({{"/srv/data.csv", target}}));
    EXPECT_EQ(failure.code, "bad-input") << target;
    return failure.message;
  }
};

TEST_F(Inputs, LieInTheWorkingDirectoryUnlessATargetIsNamed) {
  for (const char* mode : {"\"empty\"", "\"overlay\""}) {
    set("filesystem.workspace.mode", mode);
    EXPECT_EQ(placed(""), "/home/me/project/data.csv");
    EXPECT_EQ(placed("new/deep/x"), "/home/me/project/new/deep/x");
    EXPECT_EQ(placed("new/"), "/home/me/project/new/data.csv");
    EXPECT_EQ(placed("./../project/y"), "/home/me/project/y");
    EXPECT_EQ(placed("/tmp/z"), "/tmp/z");
    EXPECT_EQ(placed("/tmp/"), "/tmp/data.csv");
    EXPECT_EQ(placed("~/.config/c"), "/home/sandbox/.config/c");
    EXPECT_EQ(placed("~"), "/home/sandbox/data.csv");
    EXPECT_EQ(placed("/dev/shm/s"), "/dev/shm/s");
  }
}

TEST_F(Inputs, BelongToTheProgramAndComeAfterTheWorkspace) {
  overlay();
  const Plan decided = plan(with({{"/srv/data.csv", ""}, {"/srv/tool", ""}}));
  EXPECT_EQ(step_at(decided, "/home/me/project/data.csv")->as<mount::File>()->mode, 0640U);
  EXPECT_EQ(step_at(decided, "/home/me/project/tool")->as<mount::File>()->mode, 0755U);
  EXPECT_GT(position_of(decided, "/home/me/project/tool"),
            position_of(decided, "/home/me/project"));
}

TEST_F(Inputs, AreFoundFromTheWorkingDirectoryAndTheHome) {
  canned.files->file("/home/me/f", "home").file("/home/me/project/in", "here");
  const Plan decided = plan(with({{"~/f", ""}, {"in", "x"}, {"./in", "y/"}}));
  EXPECT_EQ(content_of(*step_at(decided, "/home/me/project/f")), "home");
  EXPECT_EQ(content_of(*step_at(decided, "/home/me/project/x")), "here");
  EXPECT_EQ(content_of(*step_at(decided, "/home/me/project/y/in")), "here");
}

TEST_F(Inputs, NeverReplaceWhatTheWorkspaceHas) {
  overlay();
  EXPECT_THAT(refused("old"), HasSubstr("something of that name"));
  EXPECT_THAT(refused("sub"), HasSubstr("something of that name"));
  EXPECT_THAT(refused("link"), HasSubstr("something of that name"));
  EXPECT_THAT(refused("old/x"), HasSubstr("is not a directory"));
  EXPECT_THAT(refused("link/x"), HasSubstr("symbolic link"));
  EXPECT_EQ(placed("sub/x"), "/home/me/project/sub/x");
}

TEST_F(Inputs, LieWhereTheProgramMayWriteAndTheHostIsNotWrittenTo) {
  set("filesystem.workspace.mode", "\"read-write\"");
  EXPECT_THAT(refused("x"), HasSubstr("live directory"));
  set("filesystem.workspace.mode", "\"read-only\"");
  EXPECT_THAT(refused("x"), HasSubstr("read-only"));
  canned.files->directory("/srv/granted");
  set("filesystem.read", R"(["/srv/granted"])");
  EXPECT_THAT(refused("/srv/granted/x"), HasSubstr("read-only"));
  for (const char* place : {"/etc/x", "/usr/x", "/x", "/proc/x", "/dev/x", "/", "/tmp", "/srv/y"})
    refused(place);
}

TEST_F(Inputs, OfOneNameAreAnError) {
  EXPECT_EQ(error(with({{"/srv/data.csv", "x"}, {"/srv/tool", "x"}})).code, "bad-input");
  canned.files->file("/home/me/project/job.py", "");
  RunRequest asked = with({{"/srv/data.csv", "job.py"}});
  asked.operands = {"job.py"};
  EXPECT_EQ(error(asked).code, "bad-input");
}

TEST_F(Inputs, AreFiles) {
  canned.files->special("/srv/pipe", host::FileType::fifo).shut("/srv/tool");
  EXPECT_THAT(error(with({{"/srv", ""}})).hint, HasSubstr("--read DIR"));
  EXPECT_THAT(error(with({{"/srv/pipe", ""}})).message, HasSubstr("is not a regular file"));
  EXPECT_EQ(error(with({{"/srv/missing", ""}})).errno_value, ENOENT);
  EXPECT_EQ(error(with({{"/srv/tool", ""}})).errno_value, EACCES);
}

TEST_F(Inputs, ThatAreHiddenStayHidden) {
  canned.files->file("/srv/.env", "s").link("/srv/innocent", ".env");
  EXPECT_EQ(error(with({{"/srv/.env", "x"}})).code, "denied-grant");
  EXPECT_EQ(error(with({{"/srv/innocent", "x"}})).code, "denied-grant");
}

TEST_F(Inputs, HaveALimitTogether) {
  canned.files->file("/srv/big", std::string(kMostInputBytes, 'x')).file("/srv/one", "x");
  plan(with({{"/srv/big", ""}}));
  EXPECT_EQ(error(with({{"/srv/big", ""}, {"/srv/one", ""}})).code, "input-too-large");
  set("limits.disk", "\"1M\"");
  EXPECT_THAT(error(with({{"/srv/big", ""}})).message, HasSubstr("limits.disk"));
}

TEST_F(Inputs, UnderALockAreWhatThePolicyGrants) {
  policy.locked = {.value = true, .origin = {.file = "p.toml", .line = 2, .layer = Layer::file}};
  EXPECT_EQ(error(with({{"/srv/data.csv", ""}})).code, "widens-locked");
  policy = policy_with({{"filesystem.read", R"(["/srv"])"}});
  policy.locked.value = true;
  EXPECT_EQ(placed(""), "/home/me/project/data.csv");
}

}  // namespace
}  // namespace sbx::plan
