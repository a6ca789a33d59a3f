#include "host/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sbx::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(IdMap, OnlyTheInitialNamespaceMapsEverythingToItself) {
  EXPECT_TRUE(is_full_id_map("         0          0 4294967295\n"));
  EXPECT_FALSE(is_full_id_map("         0       1000          1\n"));
  EXPECT_FALSE(is_full_id_map("0 0 65536\n"));
  EXPECT_FALSE(is_full_id_map("0 0 4294967295\n5 5 1\n"));
  EXPECT_FALSE(is_full_id_map(""));
  EXPECT_TRUE(is_root_outside("         0          0 4294967295\n", 0));
  EXPECT_TRUE(is_root_outside("1 1 9\n0 0 1\n", 0));
  EXPECT_FALSE(is_root_outside("         0       1000          1\n", 0));
  EXPECT_FALSE(is_root_outside("1 0 1\n", 0));
  EXPECT_TRUE(is_root_outside("      1000          0          1\n", 1000));
  EXPECT_FALSE(is_root_outside("      1000          0          9\n", 1001));
  EXPECT_FALSE(is_root_outside("", 0));
}

TEST(PidNamespace, IsThisOneWhereThePidfdShowsTheProcessesOwnNumberOnly) {
  EXPECT_TRUE(is_of_this_pid_namespace("pos:\t0\nPid:\t71\nNSpid:\t71\n", 71));
  EXPECT_FALSE(is_of_this_pid_namespace("Pid:\t71\nNSpid:\t71\t1\n", 71)) << "in a sandbox below";
  EXPECT_FALSE(is_of_this_pid_namespace("Pid:\t-1\nNSpid:\t-1\n", 71)) << "reaped meanwhile";
  EXPECT_FALSE(is_of_this_pid_namespace("Pid:\t0\nNSpid:\t0\n", 71)) << "not below this namespace";
  EXPECT_FALSE(is_of_this_pid_namespace("Pid:\t-1\nNSpid:\t-1\n", -1));
  EXPECT_FALSE(is_of_this_pid_namespace("Pid:\t71\n", 71)) << "no NSpid: before Linux 5.5";
  EXPECT_FALSE(is_of_this_pid_namespace("", 71));
}

TEST(Passwd, GivesTheHomeOfTheUid) {
  constexpr const char* kText =
      "root:x:0:0:root:/root:/bin/sh\n# a comment\nme:x:1234:1:,,,:/home/me:/bin/sh\n";
  EXPECT_EQ(home_in_passwd(kText, 1234), "/home/me");
  EXPECT_EQ(home_in_passwd(kText, 0), "/root");
  EXPECT_EQ(home_in_passwd(kText, 1), "");
}

TEST(Passwd, ARelativeHomeIsNone) {
  EXPECT_EQ(home_in_passwd("me:x:7:7::home:/bin/sh\n", 7), "");
  EXPECT_EQ(home_in_passwd("me:x:7", 7), "");
}

TEST(SearchPath, KeepsAbsoluteEntriesInOrder) {
  EXPECT_THAT(absolute_entries("/b:.::bin:/a/:/"), ElementsAre("/b", "/a", "/"));
  EXPECT_THAT(absolute_entries(""), IsEmpty());
}

TEST(Meminfo, GivesMemAvailableInBytes) {
  EXPECT_EQ(memory_available("MemTotal: 9 kB\nMemAvailable:    12 kB\n"), 12U * 1024);
  EXPECT_EQ(memory_available("MemTotal: 9 kB\n"), 0U);
}

TEST(Mountinfo, GivesPlaceAndType) {
  const auto mounts = mounts_in(
      "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
      "37 35 0:5 / /srv/a\\040b\\134c rw - tmpfs tmpfs rw\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].path, "/mnt2");
  EXPECT_EQ(mounts[0].type, "ext3");
  EXPECT_EQ(mounts[1].path, "/srv/a b\\c");
  EXPECT_EQ(mounts[1].type, "tmpfs");
}

TEST(Mountinfo, SkipsWhatIsNoMountLine) {
  EXPECT_THAT(mounts_in("nonsense\n36 35 98:0 / /mnt rw\n\n"), IsEmpty());
}

}  // namespace
}  // namespace sbx::host
