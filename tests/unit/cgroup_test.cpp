#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cgroup/files.hpp"
#include "cgroup/hierarchies.hpp"
#include "cgroup/legacy.hpp"
#include "cgroup/owned_directory.hpp"
#include "cgroup/scope.hpp"
#include "cgroup/unified.hpp"
#include "host/parse.hpp"

namespace sbx::cgroup {
namespace {

using testing::HasSubstr;

constexpr const char* kHybrid =
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "39 31 0:36 /docker/ab /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";

TEST(BudgetHierarchies, FindsEachControllerWhereItIsMounted) {
  const Hierarchies found =
      find_hierarchies("8:pids:/docker/ab/c\n4:memory:/job:1/x\n2:cpu,cpuacct:/\n0::/here\n",
                       host::mounts_in(kHybrid));
  EXPECT_EQ(found.unified->directory(), "/sys/fs/cgroup/unified/here");
  EXPECT_EQ(found.memory->directory(), "/sys/fs/cgroup/memory/job:1/x");
  EXPECT_EQ(found.cpu->directory(), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(found.cpuacct->directory(), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(found.pids->directory(), "/sys/fs/cgroup/pids/c");
}

TEST(BudgetHierarchies, AGroupOutsideOfWhatIsMountedIsAbsent) {
  const Hierarchies found =
      find_hierarchies("8:pids:/docker/other\n0::/../elsewhere\n", host::mounts_in(kHybrid));
  EXPECT_FALSE(found.pids);
  EXPECT_FALSE(found.unified);
  EXPECT_FALSE(found.memory);
}

TEST(BudgetHierarchies, ControllersOfVersionOneAreSeen) {
  EXPECT_TRUE(has_v1_controllers("2:cpu,cpuacct:/\n0::/\n"));
  EXPECT_FALSE(has_v1_controllers("9:name=systemd:/\n3:cpuset:/\n0::/\n"));
}

TEST(BudgetFiles, NumbersOfKeysAreRead) {
  EXPECT_EQ(number_of("low 0\noom 2\noom_kill 3\n", "oom"), 2U);
  EXPECT_EQ(number_of("low 0\noom 2\noom_kill 3\n", "oom_kill"), 3U);
  EXPECT_EQ(number_of("low 0\n", "oom_kill"), 0U);
  EXPECT_TRUE(has_word("cpu memory pids", "memory"));
  EXPECT_FALSE(has_word("cpuset hugetlb", "cpu"));
}

/// Directories and files that look like a cgroup file system. They lack what the kernel does by
/// itself: the files of a new group, removing a group with files.
class FakeTree : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sbx-budget-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text << "\n";
  }
  void group(const std::string& path, const std::string& controllers, const std::string& passed_on,
             const std::string& processes = "") {
    if (!path.empty()) put(path + "/cgroup.type", "domain");
    put(path + "/cgroup.controllers", controllers);
    put(path + "/cgroup.subtree_control", passed_on);
    put(path + "/cgroup.procs", processes);
  }
  void delegate(const std::string& path) {
    if (::setxattr((root_ + "/" + path).c_str(), "user.delegate", "1", 1, 0) != 0)
      GTEST_SKIP() << "this file system has no user attributes";
  }
  [[nodiscard]] GroupPath at(const std::string& group) const { return {root_, group}; }
  [[nodiscard]] static Caller me() { return {.uid = ::geteuid(), .pid = ::getpid()}; }
  std::string root_;
};

constexpr const char* kAll = "cpu io memory pids";

TEST_F(FakeTree, BelowTheRootOfTheHierarchyWhichMayHaveProcesses) {
  group("", kAll, "memory pids", "1\n2\n3");
  const auto spot = find_spot(at(""), me());
  ASSERT_TRUE(spot) << spot.error().text();
  EXPECT_EQ(spot->parent, root_);
  EXPECT_TRUE(spot->controllers.memory);
  EXPECT_FALSE(spot->controllers.cpu);
  EXPECT_FALSE(spot->alone);
}

TEST_F(FakeTree, ARootThatPassesNothingOnIsLeftAsItIs) {
  group("", kAll, "", "1");
  const auto spot = find_spot(at(""), me());
  ASSERT_FALSE(spot);
  EXPECT_THAT(spot.error().message, HasSubstr("cgroup.subtree_control"));
}

TEST_F(FakeTree, BesideTheOwnGroupWhereTheOneAboveIsDelegatedToAUser) {
  group("", kAll, kAll);
  group("mine", kAll, kAll);
  group("mine/shell", kAll, "", "7\n8");
  const auto spot = find_spot(at("/mine/shell"), me());
  if (::geteuid() == 0) {
    ASSERT_FALSE(spot) << "root may write everywhere: that delegates nothing";
    return;
  }
  ASSERT_TRUE(spot) << spot.error().text();
  EXPECT_EQ(spot->parent, root_ + "/mine");
  EXPECT_TRUE(spot->controllers.memory && spot->controllers.pids && spot->controllers.cpu);
}

TEST_F(FakeTree, NotBesideItWhereSystemdIsTheOnlyWriter) {
  group("", kAll, kAll);
  group("user@1.service/app.slice", kAll, kAll);
  group("user@1.service/app.slice/term.scope", kAll, "", "7\n8");
  EXPECT_FALSE(find_spot(at("/user@1.service/app.slice/term.scope"), me()));
}

TEST_F(FakeTree, BesideItWithinAUnitThatSystemdDelegated) {
  group("", kAll, kAll);
  group("build.service", kAll, kAll);
  group("build.service/main", kAll, "", "7\n8");
  EXPECT_FALSE(find_spot(at("/build.service/main"), me()));
  delegate("build.service");
  const auto spot = find_spot(at("/build.service/main"), me());
  ASSERT_TRUE(spot) << spot.error().text();
  EXPECT_EQ(spot->parent, root_ + "/build.service");
}

TEST_F(FakeTree, WithinTheOwnGroupWhereSbxIsAlone) {
  group("", kAll, kAll);
  group("job.scope", kAll, "", std::to_string(::getpid()));
  delegate("job.scope");
  const auto spot = find_spot(at("/job.scope"), me());
  ASSERT_TRUE(spot) << spot.error().text();
  EXPECT_EQ(spot->parent, root_ + "/job.scope");
  EXPECT_TRUE(spot->alone);
}

TEST_F(FakeTree, NotWithinItWhereOthersAreInIt) {
  group("", kAll, kAll);
  group("job.scope", kAll, "", std::to_string(::getpid()) + "\n12");
  delegate("job.scope");
  const auto spot = find_spot(at("/job.scope"), me());
  ASSERT_FALSE(spot);
  EXPECT_THAT(spot.error().message, HasSubstr("other processes"));
}

TEST_F(FakeTree, AContainersOwnRootIsNoHierarchyRoot) {
  group("", kAll, "", std::to_string(::getpid()));
  put("cgroup.type", "domain");
  const auto spot = find_spot(at(""), me());
  ASSERT_TRUE(spot) << spot.error().text();
  EXPECT_TRUE(spot->alone);
}

TEST_F(FakeTree, TheSmallestLimitOfAllGroupsAboveIsGranted) {
  put("a/memory.max", "1000000");
  put("a/pids.max", "max");
  put("a/cpu.max", "150000 100000");
  put("a/b/memory.max", "max");
  put("a/b/pids.max", "30");
  put("a/b/cpu.max", "max 100000");
  const auto granted = granted_by_unified(at("/a/b"));
  EXPECT_EQ(granted.memory_bytes, 1'000'000U);
  EXPECT_EQ(granted.processes, 30U);
  EXPECT_DOUBLE_EQ(granted.cpus.value(), 1.5);
}

TEST_F(FakeTree, TheLimitsOfVersionOneAreReadTheSameWay) {
  put("a/memory.limit_in_bytes", "1000000");
  put("a/b/memory.limit_in_bytes", "9223372036854771712");
  put("a/cpu.cfs_quota_us", "-1");
  put("a/cpu.cfs_period_us", "100000");
  put("a/b/cpu.cfs_quota_us", "50000");
  put("a/b/cpu.cfs_period_us", "100000");
  const auto granted = granted_by_legacy({.memory = at("/a/b"), .cpu = at("/a/b")});
  EXPECT_EQ(granted.memory_bytes, 1'000'000U);
  EXPECT_DOUBLE_EQ(granted.cpus.value(), 0.5);
  EXPECT_FALSE(granted.processes);
}

class Owned : public FakeTree {
 protected:
  void SetUp() override {
    FakeTree::SetUp();
    auto probe = OwnedDirectory::make(root_, unique_name());
    if (!probe) GTEST_SKIP() << probe.error().text();
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return std::filesystem::exists(root_ + "/" + name);
  }
};

TEST_F(Owned, AGroupIsRemovedWithItsHolder) {
  const std::string name = unique_name();
  {
    const auto directory = OwnedDirectory::make(root_, name);
    ASSERT_TRUE(directory);
    EXPECT_TRUE(exists(name));
  }
  EXPECT_FALSE(exists(name));
}

TEST_F(Owned, AGroupInsideAnotherIsMadeAndRemovedWhereverThatIs) {
  const std::string name = unique_name();
  auto around = OwnedDirectory::make(root_, name);
  ASSERT_TRUE(around);
  std::filesystem::rename(root_ + "/" + name, root_ + "/moved");
  {
    const auto inner = around->make_inner("inner");
    ASSERT_TRUE(inner);
    EXPECT_EQ(inner->path(), root_ + "/" + name + "/inner");
    EXPECT_TRUE(exists("moved/inner"));
  }
  EXPECT_FALSE(exists("moved/inner"));
  std::filesystem::rename(root_ + "/moved", root_ + "/" + name);
}

TEST_F(Owned, TheGroupOfALivingSupervisorStays) {
  const std::string name = unique_name();
  const auto directory = OwnedDirectory::make(root_, name);
  sweep(root_);
  EXPECT_TRUE(exists(name));
}

TEST_F(Owned, TheGroupOfADeadSupervisorIsRemoved) {
  const std::string name = unique_name();
  auto directory = OwnedDirectory::make(root_, name);
  ASSERT_TRUE(directory);
  ::close(directory->release());  // as the kernel does when the process that holds it dies
  EXPECT_TRUE(exists(name));
  sweep(root_);
  EXPECT_FALSE(exists(name));
}

TEST_F(Owned, AForeignGroupOfTheSameNameStays) {
  const std::string name = unique_name();
  ASSERT_EQ(::mkdir((root_ + "/" + name).c_str(), 0755), 0);
  sweep(root_);
  EXPECT_TRUE(exists(name));
}

TEST_F(Owned, AGroupWithSomethingInItStays) {
  const std::string name = unique_name();
  auto directory = OwnedDirectory::make(root_, name);
  ASSERT_TRUE(directory);
  put(name + "/inside", "");
  ::close(directory->release());
  sweep(root_);
  EXPECT_TRUE(exists(name));
}

TEST(BudgetDirectories, WhereNoGroupCanBeMadeTheCodeSaysSo) {
  const auto made = OwnedDirectory::make("/proc/self", "sbx-test");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, "no-cgroup");
}

TEST(BudgetScope, WithoutTheUsersManagerTheCodeSaysSo) {
  constexpr uid_t kNobodyLogsInAsThis = 4'000'000'000;
  const Status scope = ScopeRequest::send(kNobodyLogsInAsThis).finish();
  ASSERT_FALSE(scope);
  EXPECT_EQ(scope.error().code, "no-scope");
}

TEST(BudgetNames, AreDifferent) {
  EXPECT_EQ(unique_name().size(), 20U);
  EXPECT_NE(unique_name(), unique_name());
}

}  // namespace
}  // namespace sbx::cgroup
