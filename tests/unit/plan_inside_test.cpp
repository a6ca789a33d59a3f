#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Not;

std::string content_of(const Plan& plan, std::string_view target) {
  const Mount* step = step_at(plan, target);
  return step != nullptr && step->kind() == MountKind::file ? content_of(*step) : "(no file)";
}

TEST_F(PlanTest, SystemDirectoriesAreBoundReadOnlyAndMergedOnesStayLinks) {
  const Plan decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::bind, "/usr"));
  EXPECT_TRUE(step_at(decided, "/usr")->read_only());
  EXPECT_TRUE(is_recursive(*step_at(decided, "/usr")));
  ASSERT_THAT(decided, HasStep(MountKind::symlink, "/lib64"));
  EXPECT_EQ(step_at(decided, "/lib64")->source(), "usr/lib64");
}

TEST_F(PlanTest, UnmergedSystemDirectoriesAreBound) {
  canned.files->directory("/lib32").program("/lib32/x");
  EXPECT_THAT(plan(), HasStep(MountKind::bind, "/lib32"));
}

TEST_F(PlanTest, EtcIsCurated) {
  const Plan decided = plan();
  EXPECT_EQ(content_of(decided, "/etc/timezone"), "Etc/UTC\n");
  EXPECT_EQ(step_at(decided, "/etc/localtime")->source(), "/usr/share/zoneinfo/Etc/UTC");
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/etc/ssl/certs"));
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/etc/python3.11"));
  EXPECT_EQ(step_at(decided, "/etc/shadow"), nullptr);
  EXPECT_THAT(content_of(decided, "/etc/passwd"), Not(testing::HasSubstr("me:x:1234")));
  EXPECT_THAT(content_of(decided, "/etc/passwd"), testing::HasSubstr("sandbox:x:1000:1000"));
}

TEST_F(PlanTest, WhatOnlyRootReadsInEtcIsLeftOut) {
  canned.files->directory("/etc/R", 0700).directory("/etc/perl", 0755);
  const Plan decided = plan();
  EXPECT_EQ(step_at(decided, "/etc/R"), nullptr);
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/etc/perl"));
}

TEST_F(PlanTest, TheHostsNameServersAreCopiedOnlyWithItsNetwork) {
  canned.files->file("/etc/resolv.conf", "nameserver 192.0.2.1\n");
  canned.files->file("/etc/nsswitch.conf", "passwd: files ldap\nhosts: files mdns dns\n");
  EXPECT_THAT(content_of(plan(), "/etc/resolv.conf"), Not(testing::HasSubstr("192.0.2.1")));
  set("network.mode", "\"host\"");
  const Plan decided = plan();
  EXPECT_EQ(content_of(decided, "/etc/resolv.conf"), "nameserver 192.0.2.1\n");
  EXPECT_THAT(content_of(decided, "/etc/nsswitch.conf"),
              testing::HasSubstr("hosts: files mdns dns"));
  EXPECT_THAT(content_of(decided, "/etc/nsswitch.conf"), Not(testing::HasSubstr("ldap")));
  EXPECT_FALSE(decided.network.own_namespace);
}

/// The program can read what has the path on the machine.
bool is_readable(const Plan& plan, std::string_view path) {
  return std::ranges::any_of(plan.access, [&](const Access& each) {
    return is_within(path, each.path) && !each.lists_only && !each.holds_only;
  });
}

TEST_F(PlanTest, WhatIsDeniedIsNotShownInEtc) {
  canned.files->directory("/srv/conf").file("/srv/conf/secret", "DENIED").file("/srv/conf/open");
  canned.files->directory("/etc/maven").file("/etc/services", "DENIED").file("/etc/magic", "text");
  canned.files->link("/etc/php.ini", "/srv/conf/secret").link("/etc/lua", "/srv/conf");
  canned.files->file("/etc/passwd", "DENIED").file("/etc/hosts").file("/etc/resolv.conf", "DENIED");
  for (const char* isolation : {R"("namespaces")", R"("landlock")"}) {
    policy = policy_with({{"isolation", isolation}, {"network.mode", "\"host\""}});
    const Plan shown = plan();
    for (const char* name : {"/etc/php.ini", "/etc/services", "/etc/lua"})
      EXPECT_TRUE(step_at(shown, name) != nullptr || is_readable(shown, name)) << name << isolation;
    policy = policy_with({{"isolation", isolation},
                          {"network.mode", "\"host\""},
                          {"filesystem.deny",
                           R"(["/srv/conf/secret", "/etc/services", "/etc/maven", "/etc/passwd",
                               "/etc/resolv.conf", "/proc/cpuinfo"])"}});
    const Plan decided = plan();
    for (const char* name : {"/etc/php.ini", "/etc/services", "/etc/maven"})
      EXPECT_EQ(step_at(decided, name), nullptr) << name << isolation;
    for (const Mount& step : decided.mounts)
      EXPECT_THAT(content_of(step), Not(testing::HasSubstr("DENIED"))) << step.target << isolation;
    EXPECT_TRUE(step_at(decided, "/etc/magic") != nullptr || is_readable(decided, "/etc/magic"));
  }
  const Plan decided = plan();  // without namespaces
  for (const char* name : {"/srv/conf/secret", "/etc/services", "/etc/maven", "/etc/passwd",
                           "/etc/resolv.conf", "/proc/cpuinfo"})
    EXPECT_FALSE(is_readable(decided, name)) << name;
  for (const char* name : {"/srv/conf/open", "/etc/magic", "/etc/hosts", "/proc/meminfo"})
    EXPECT_TRUE(is_readable(decided, name)) << name;
}

TEST_F(PlanTest, WhatIsDeniedIsNotShownInEtcUnderAnotherName) {
  canned.files->directory("/srv/ssl").file("/srv/ssl/openssl.cnf", "DENIED");
  canned.files->link("/etc/X11", "/srv/X11").directory("/srv/X11").file("/srv/X11/rgb.txt", "red");
  canned.files->directory("/srv/r")
      .file("/srv/r/hosts", "DENIED")
      .link("/etc/hosts", "/srv/r/hosts");
  canned.files->file("/etc/ruby1", "DENIED");
  canned.files->hard_link("/etc/ruby2", "/etc/ruby1");
  canned.files->link("/etc/maven", "/srv/ssl");
  for (const char* isolation : {R"("namespaces")", R"("landlock")"}) {
    policy = policy_with({{"isolation", isolation},
                          {"network.mode", "\"host\""},
                          {"filesystem.deny",
                           R"(["/srv/ssl/openssl.cnf", "/srv/r", "/etc/ruby1",
                               "/sys/devices/system/cpu/online"])"}});
    const Plan decided = plan();
    for (const Mount& step : decided.mounts)
      EXPECT_THAT(content_of(step), Not(testing::HasSubstr("DENIED"))) << step.target << isolation;
    EXPECT_EQ(step_at(decided, "/etc/ruby2"), nullptr) << isolation;
    const Mount* shown = step_at(decided, "/etc/X11/rgb.txt");
    EXPECT_TRUE((shown != nullptr && content_of(*shown) == "red") ||
                is_readable(decided, "/srv/X11/rgb.txt"))
        << isolation;
  }
  const Plan decided = plan();  // without namespaces
  for (const char* name : {"/srv/ssl/openssl.cnf", "/srv/r/hosts", "/etc/ruby1", "/etc/ruby2",
                           "/sys/devices/system/cpu/online"})
    EXPECT_FALSE(is_readable(decided, name)) << name;
  for (const char* above : {R"(["/sys/devices"])", R"(["/sys/devices/system/c*"])"}) {
    policy = policy_with({{"isolation", R"("landlock")"}, {"filesystem.deny", above}});
    EXPECT_FALSE(is_readable(plan(), "/sys/devices/system/cpu/online")) << above;
  }
  policy = policy_with({{"isolation", R"("landlock")"}});
  EXPECT_TRUE(is_readable(plan(), "/sys/devices/system/cpu/online"));
  EXPECT_TRUE(is_readable(plan(), "/etc/ruby1"));
}

TEST_F(PlanTest, WhatAnOwnUidCannotReachInEtcIsLeftOut) {
  canned.host.changes_ids = true;
  canned.files->directory("/srv/closed", 0700).file("/srv/closed/zone", "text");
  canned.files->link("/etc/php.ini", "/srv/closed/zone");
  set("isolation", R"("landlock")");
  const Plan decided = plan();
  ASSERT_TRUE(decided.identity.own_uids);
  EXPECT_EQ(step_at(decided, "/etc/php.ini"), nullptr);
  for (const Mount& step : decided.mounts) EXPECT_NE(content_of(step), "text") << step.target;
}

TEST_F(PlanTest, DevicesCarryTheirNumbers) {
  const Plan decided = plan();
  EXPECT_EQ(step_at(decided, "/dev/null")->as<mount::Device>()->number, 0x103U);
  EXPECT_EQ(step_at(decided, "/dev/urandom")->as<mount::Device>()->number, 0x109U);
  EXPECT_EQ(step_at(decided, "/dev/tty"), nullptr);
  RunRequest asked = request({"true"});
  asked.interactive = true;
  EXPECT_THAT(plan(asked), HasStep(MountKind::device, "/dev/tty"));
}

TEST_F(PlanTest, ProcIsMountedBeforeItsMasks) {
  const Plan decided = plan();
  for (const char* masked : {"/proc/keys", "/proc/kcore", "/proc/sysrq-trigger", "/proc/bus"})
    EXPECT_LT(position_of(decided, "/proc"), position_of(decided, masked)) << masked;
  EXPECT_THAT(decided, HasStep(MountKind::read_only, "/proc/sys"));
}

TEST_F(PlanTest, NothingOfSysOrTheHostsHomesIsThere) {
  for (const Mount& step : plan().mounts) {
    EXPECT_FALSE(step.target.starts_with("/sys")) << step.target;
    EXPECT_FALSE(step.source().starts_with("/home/me")) << step.source();
  }
}

TEST_F(PlanTest, TheEnvironmentIsTheSameForEveryCaller) {
  canned.host.environment = {{"SECRET", "x"}, {"TERM", "xterm"}, {"PATH", "/home/me/bin"}};
  EXPECT_THAT(plan().environment,
              ElementsAre("HOME=/home/sandbox", "LANG=C.UTF-8", "LOGNAME=sandbox",
                          "PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/sh", "TMPDIR=/tmp",
                          "USER=sandbox"));
}

TEST_F(PlanTest, TheUserHasTheNameOfThePolicyAndItsHome) {
  policy = policy_with({{"environment.user", R"("user")"}});
  const Plan decided = plan();
  EXPECT_EQ(variable(decided, "HOME"), "/home/user");
  EXPECT_EQ(variable(decided, "USER"), "user");
  EXPECT_TRUE(std::ranges::any_of(decided.mounts,
                                  [](const Mount& step) { return step.target == "/home/user"; }));
}

TEST_F(PlanTest, DirectoriesOfTheRunsOwnAreScratch) {
  policy = policy_with({{"filesystem.private", R"(["/data"])"}});
  const Plan decided = plan();
  EXPECT_TRUE(std::ranges::any_of(decided.mounts, [](const Mount& step) {
    return step.target == "/data" && step.kind() == MountKind::scratch && !step.read_only();
  }));
}

TEST_F(PlanTest, VariablesArePassedByNameAndTheRequestWins) {
  canned.host.environment = {{"TZ", "UTC"}, {"A", "caller"}, {"LANG", "de_DE"}};
  policy = policy_with({{"environment.pass", R"(["TZ", "LANG", "MISSING"])"},
                        {"environment.set", R"({ A = "policy", B = "policy" })"}});
  RunRequest asked = request({"true"});
  asked.environment = {{"B", "request"}};
  const Plan decided = plan(asked);
  EXPECT_EQ(variable(decided, "TZ"), "UTC");
  EXPECT_EQ(variable(decided, "LANG"), "de_DE");
  EXPECT_EQ(variable(decided, "A"), "policy");
  EXPECT_EQ(variable(decided, "B"), "request");
  EXPECT_EQ(variable(decided, "MISSING"), "(unset)");
}

TEST_F(PlanTest, TermIsPassedToAnInteractiveProgramOnly) {
  canned.host.environment = {{"TERM", "xterm"}};
  EXPECT_EQ(variable(plan(), "TERM"), "(unset)");
  RunRequest asked = request({"true"});
  asked.interactive = true;
  EXPECT_EQ(variable(plan(asked), "TERM"), "xterm");
}

TEST_F(PlanTest, AnotherSystemIsTakenFromItsDirectory) {
  canned.files->program("/srv/os/usr/bin/tool").link("/srv/os/bin", "usr/bin");
  canned.files->file("/srv/os/etc/timezone", "Other\n").program("/usr/bin/only-here");
  canned.files->link("/srv/os/usr/bin/python3", "/usr/bin/python3.9");
  canned.files->program("/srv/os/usr/bin/python3.9");
  set("filesystem.system", "\"/srv/os\"");
  const Plan decided = plan({"tool"});
  EXPECT_EQ(step_at(decided, "/usr")->source(), "/srv/os/usr");
  EXPECT_EQ(content_of(decided, "/etc/timezone"), "Other\n");
  EXPECT_EQ(decided.executable, "/usr/bin/tool");
  EXPECT_EQ(plan({"python3"}).executable, "/usr/bin/python3.9");
  EXPECT_EQ(error({"only-here"}).kind, ErrorKind::not_found);
}

TEST_F(PlanTest, ADirectoryWithoutASystemIsAnError) {
  canned.files->directory("/srv/os");
  set("filesystem.system", "\"/srv/os\"");
  EXPECT_EQ(error().code, "no-system");
  set("filesystem.system", "\"/srv/missing\"");
  EXPECT_EQ(error().code, "missing-system");
}

}  // namespace
}  // namespace sbx::plan
