#include "plan/files/reach.hpp"
#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

std::vector<std::string> paths_with(const Plan& plan, bool Rights::* right) {
  std::vector<std::string> paths;
  for (const Access& access : plan.access)
    if (access.rights.*right) paths.push_back(access.path);
  return paths;
}

const Access* access_to(const Plan& plan, std::string_view path) {
  const auto found = std::ranges::find(plan.access, path, &Access::path);
  return found == plan.access.end() ? nullptr : &*found;
}

TEST_F(PlanTest, TheProgramMayReadEverythingInsideAndWriteWhatIsPrivate) {
  const Plan decided = plan();
  ASSERT_FALSE(decided.access.empty());
  EXPECT_EQ(decided.access.front(), (Access{.path = "/", .rights = {}}));
  EXPECT_THAT(
      paths_with(decided, &Rights::make),
      testing::UnorderedElementsAre("/dev/shm", "/tmp", "/home/sandbox", "/home/me/project"));
  EXPECT_THAT(paths_with(decided, &Rights::write),
              testing::UnorderedElementsAre("/dev/shm", "/tmp", "/home/sandbox", "/home/me/project",
                                            "/proc", "/dev", "/dev/pts"));
}

TEST_F(PlanTest, AGrantSaysOnceWhatMayBeDoneAndWhichLineAllowsIt) {
  canned.files->directory("/srv/in").directory("/srv/out").file("/srv/notes.txt", "");
  policy = policy_with({{"filesystem.read", R"(["/srv/in"])"},
                        {"filesystem.write", R"(["/srv/out", "/srv/notes.txt"])"}});
  const Plan decided = plan();
  EXPECT_EQ(access_to(decided, "/srv/in")->rights, Rights{});
  EXPECT_EQ(access_to(decided, "/srv/out")->rights,
            (Rights{.write = true, .make = true, .special = false}));
  EXPECT_FALSE(access_to(decided, "/srv/notes.txt")->is_directory);
  for (const char* path : {"/srv/in", "/srv/out", "/srv/notes.txt"})
    EXPECT_EQ(access_to(decided, path)->rights, step_at(decided, path)->rights) << path;
  EXPECT_EQ(access_to(decided, "/srv/out")->origin.file, "--set");
}

TEST(Access, WhatCoversAPartOfAnotherStepAddsNothing) {
  const std::vector<Mount> mounts{
      {.target = "/proc", .payload = mount::Proc{}, .rights = {.write = true}},
      {.target = "/proc/keys", .payload = mount::MaskFile{}, .rights = kWritable},
      {.target = "/proc/sys", .payload = mount::ReadOnly{}},
      {.target = "/srv/a", .payload = mount::Pinned{}, .rights = kWritable},
      {.target = "/etc/x", .payload = mount::File{}},
  };
  const std::vector<Access> all = reached_through(mounts);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].path, "/proc");
}

TEST(Access, WithTheCallersProcEveryPartOfTheRootIsReachedButThatAndItsRoot) {
  const std::vector<Mount> mounts{
      {.target = "/usr", .payload = mount::Bind{}},
      {.target = "/bin", .payload = mount::Symlink{}},
      {.target = "/proc", .payload = mount::OuterProc{}},
      {.target = "/etc/x", .payload = mount::File{}},
      {.target = "/srv/a/b", .payload = mount::Scratch{}, .rights = kWritable},
      {.target = "/notes", .payload = mount::File{}},
  };
  const std::vector<Access> all = reached_through(mounts);
  const auto find = [&](const char* path) { return std::ranges::find(all, path, &Access::path); };
  for (const char* const path : {"/", "/proc", "/bin"}) EXPECT_EQ(find(path), all.end()) << path;
  for (const char* const path : {"/usr", "/etc", "/srv"})
    EXPECT_EQ(find(path)->rights, Rights{}) << path;
  EXPECT_EQ(find("/srv/a/b")->rights, kWritable);
  EXPECT_FALSE(find("/notes")->is_directory);
  EXPECT_EQ(find("/proc/meminfo")->rights, Rights{.execute = false});
  EXPECT_EQ(std::ranges::count_if(all, [](const Access& each) { return each.rights.write; }), 1);
}

}  // namespace
}  // namespace sbx::plan
