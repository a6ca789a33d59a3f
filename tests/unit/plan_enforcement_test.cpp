#include "plan/enforcement.hpp"
#include "plan/filter/outside.hpp"
#include "plan/tier/tiers.hpp"
#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::HasSubstr;

RunRequest requiring(std::vector<std::string> names) {
  RunRequest asked = request({"true"});
  asked.require = std::move(names);
  return asked;
}

TEST_F(PlanTest, WithoutANetworkEveryAttemptIsNamedAndThatCanBeRequired) {
  const Plan none = plan(requiring({"network.named"}));
  EXPECT_FALSE(is_degraded(none, "network.named"));
  EXPECT_EQ(none.filter.context.noted, std::vector<int>{SYS_connect});

  policy = policy_with({{"network.named", "false"}});
  EXPECT_TRUE(plan().filter.context.noted.empty());
  policy = policy_with({{"network.mode", "\"host\""}});
  EXPECT_TRUE(plan().filter.context.noted.empty());
}

TEST_F(PlanTest, AMissingLandlockIsDegradedAndCanBeRequired) {
  EXPECT_FALSE(is_degraded(plan(requiring({"landlock"})), "landlock"));
  canned.host.landlock_abi = 0;
  EXPECT_TRUE(is_degraded(plan(), "landlock"));
  const Error failure = error(requiring({"landlock"}));
  EXPECT_EQ(failure.code, "requirement-not-met");
  EXPECT_EQ(failure.kind, ErrorKind::host);
}

TEST_F(PlanTest, LandlockThatThePolicyWaivesIsNotDegradedButDoesNotMeetARequirement) {
  set("filesystem.landlock", "false");
  EXPECT_FALSE(is_degraded(plan(), "landlock"));
  EXPECT_EQ(error(requiring({"landlock"})).code, "requirement-not-met");
}

TEST_F(PlanTest, ARequirementThatIsNoneIsAUsageError) {
  EXPECT_EQ(error(requiring({"memory"})).code, "unknown-requirement");
}

TEST_F(PlanTest, IsolationIsByNamespacesUnlessLessIsAskedFor) {
  for (const char* word : {"\"namespaces\"", "\"auto\""}) {
    policy = policy_with({{"isolation", word}});
    EXPECT_EQ(tier_of(plan(requiring({"namespaces", "own-uid"})).tier).name, "namespaces");
  }
  policy = policy_with({{"isolation", "\"landlock\""}});
  EXPECT_EQ(tier_of(plan().tier).form, "same-uid");
  EXPECT_EQ(error(requiring({"own-uid"})).code, "requirement-not-met");
  canned.host.landlock_abi = 5;  // without scopes for signals
  EXPECT_EQ(error(request({"true"})).code, "no-landlock-tier");
  canned.host.changes_ids = true;
  EXPECT_EQ(tier_of(plan().tier).form, "own-uid");
  canned.host.landlock_abi = 7;
  EXPECT_EQ(tier_of(plan(requiring({"own-uid"})).tier).name, "landlock");
  EXPECT_EQ(error(requiring({"namespaces"})).code, "requirement-not-met");
  // Only a machine that has refused namespaces makes "auto" step down.
  policy = policy_with({{"isolation", "\"auto\""}});
  canned.host.refuses_namespaces = true;
  EXPECT_EQ(tier_of(plan().tier).name, "landlock");
  policy = policy_with({{"isolation", "\"namespaces\""}});
  EXPECT_EQ(tier_of(plan().tier).name, "namespaces");
}

TEST_F(PlanTest, TheCallersUidIsNotTakenWhereSbxCannotLookAtItsOwnSandbox) {
  constexpr const char* kSetting = "/proc/sys/kernel/yama/ptrace_scope";
  policy = policy_with({{"isolation", "\"landlock\""}});
  canned.files->file(kSetting, "1\n");
  EXPECT_EQ(tier_of(plan().tier).form, "same-uid");
  canned.files->file(kSetting, "2\n");
  const Error failure = error(request({"true"}));
  EXPECT_EQ(failure.code, "no-landlock-tier");
  EXPECT_TRUE(failure.message.contains("ptrace_scope"));
}

TEST_F(PlanTest, ALiveGrantTakesTheCallersUidWhereThatIsPossible) {
  canned.host.changes_ids = true;
  canned.files->directory("/srv/out").owner("/srv/out", canned.host.uid, canned.host.gid);
  policy = policy_with({{"isolation", "\"landlock\""}});
  EXPECT_EQ(tier_of(plan().tier).form, "own-uid");
  policy = policy_with({{"isolation", "\"landlock\""}, {"filesystem.write", "[\"/srv/out\"]"}});
  EXPECT_EQ(tier_of(plan().tier).form, "same-uid");
  EXPECT_EQ(error(requiring({"own-uid"})).code, "requirement-not-met");
  canned.files->file("/srv/out/.env", "TOKEN");
  EXPECT_EQ(error(request({"true"})).code, "needs-namespaces");
  canned.host.landlock_abi = 5;  // without scopes for signals
  EXPECT_EQ(error(request({"true"})).code, "needs-namespaces");
}

TEST_F(PlanTest, ThePrivateDirectoryIsHeldAndCannotBeListed) {
  policy = policy_with({{"isolation", "\"landlock\""}});
  const Plan decided = plan();
  const auto top = std::ranges::find(decided.access, decided.private_directory, &Access::path);
  ASSERT_NE(top, decided.access.end());
  EXPECT_TRUE(top->holds_only);
  for (const Access& each : decided.access)
    EXPECT_FALSE(each.rights.write && !each.rights.execute && is_within(each.path, top->path))
        << each.path << " can be written to but not executed from";
}

TEST_F(PlanTest, SharedMemoryIsLentWhereEverybodyMayMakeFiles) {
  policy = policy_with({{"isolation", "\"landlock\""}});
  const auto reached = [](const Plan& decided) {
    return std::ranges::find(decided.access, "/dev/shm", &Access::path) != decided.access.end();
  };
  EXPECT_FALSE(plan().lends_shared_memory);
  for (const mode_t mode : {0755U, 0777U, 01755U, 01777U}) {
    canned.files->directory("/dev/shm", mode).owner("/dev/shm", 0, 0);
    EXPECT_EQ(plan().lends_shared_memory, mode == 01777) << mode;
    EXPECT_EQ(reached(plan()), mode == 01777) << mode;
  }
  canned.files->owner("/dev/shm", canned.host.uid, canned.host.uid);
  EXPECT_FALSE(plan().lends_shared_memory);
  canned.files->owner("/dev/shm", 0, 0);
  canned.files->directory("/run/shm", 01777).link("/dev/shm", "/run/shm");
  EXPECT_FALSE(plan().lends_shared_memory);
}

TEST_F(PlanTest, ProcessesOfRootsOwnUidAreCountedWhereNoCgroupDoesIt) {
  EXPECT_FALSE(plan().counts_tasks);
  canned.host.escapes_process_limit = true;
  const Plan counted = plan();
  EXPECT_TRUE(counted.counts_tasks);
  EXPECT_TRUE(is_degraded(counted, "limits.processes"));
  EXPECT_EQ(counted.filter.context.served.size(), served_tasks().size());

  RunRequest held = request({});
  held.hold = true;
  const Plan session = plan(held);
  EXPECT_TRUE(session.counts_tasks);
  EXPECT_TRUE(is_degraded(session, "limits.processes"));
  EXPECT_EQ(session.filter.context.served.size(), served_tasks().size());

  canned.host.control_group.processes = host::Means::cgroup_v2;
  EXPECT_FALSE(plan().counts_tasks);
  EXPECT_FALSE(is_degraded(plan(), "limits.processes"));
}

TEST_F(PlanTest, RequirementsThatNeedACgroupAreNotMet) {
  for (const char* name : {"memory.cgroup", "cpu.cgroup", "processes.cgroup", "all"})
    EXPECT_EQ(error(requiring({name})).code, "requirement-not-met") << name;
}

TEST_F(PlanTest, AMissingMemoryControllerIsNamed) {
  canned.host.control_group.why = "no group may be made";
  canned.host.control_group.memory_is_off = true;
  const auto why_of = [](const Plan& plan, Promise promise) {
    const auto found = std::ranges::find(plan.degraded, promise, &Degraded::promise);
    return found == plan.degraded.end() ? "" : found->why;
  };
  EXPECT_EQ(why_of(plan(), Promise::memory), kMemoryIsOff);
  EXPECT_THAT(error(requiring({"memory.cgroup"})).message, HasSubstr(std::string(kMemoryIsOff)));
  EXPECT_THAT(error(requiring({"cpu.cgroup"})).message, HasSubstr("no group may be made"));
  canned.host.control_group.memory_is_off = false;
  EXPECT_EQ(why_of(plan(), Promise::memory), "no group may be made");
}

TEST_F(PlanTest, RequirementsThatNeedACgroupAreMetByOneOfEitherVersion) {
  canned.host.control_group.memory = host::Means::cgroup_v2;
  EXPECT_FALSE(is_degraded(plan(requiring({"memory.cgroup"})), "limits.memory"));
  EXPECT_EQ(error(requiring({"cpu.cgroup"})).code, "requirement-not-met");
  canned.host.control_group.cpus = canned.host.control_group.processes = host::Means::cgroup_v1;
  plan(requiring({"memory.cgroup", "cpu.cgroup", "processes.cgroup"}));
}

TEST_F(PlanTest, WithACgroupMemoryFilesAndAffinityAreFree) {
  EXPECT_TRUE(plan().filter.context.memory_is_polled);
  EXPECT_TRUE(plan().filter.context.affinity_is_budget);
  canned.host.control_group.memory = canned.host.control_group.cpus = host::Means::cgroup_v1;
  EXPECT_FALSE(plan().filter.context.memory_is_polled);
  EXPECT_FALSE(plan().filter.context.affinity_is_budget);
}

TEST_F(PlanTest, RequirementsThatAreMetPass) {
  plan(requiring({"trusted-policy", "syscalls.named"}));
}

class TrustedPolicy : public PlanTest {
 protected:
  static constexpr const char* kFile = "/home/me/cfg/p.toml";
  TrustedPolicy() {
    canned.files->file(kFile).file("/home/me/project/p.toml");
    policy.files = {kFile};
  }
  void use(policy::Policy other, const char* file = kFile) {
    policy = std::move(other);
    policy.files = {file};
  }
  void expect_untrusted(const char* why) {
    EXPECT_TRUE(is_degraded(plan(), "trusted-policy")) << why;
    EXPECT_EQ(error(requiring({"trusted-policy"})).code, "requirement-not-met") << why;
  }
};

TEST_F(TrustedPolicy, OfTheCallerAloneIsTrusted) {
  EXPECT_FALSE(is_degraded(plan(), "trusted-policy"));
  plan(requiring({"trusted-policy"}));
}

TEST_F(TrustedPolicy, ThatOthersCanWriteIsNot) {
  for (const mode_t mode : {0666U, 0664U}) {
    canned.files->file(kFile, "", mode);
    expect_untrusted("file");
  }
  canned.files->file(kFile, "", 0644).directory("/home/me/cfg", 0777);
  expect_untrusted("directory");
  canned.files->directory("/home/me/cfg", 01777);
  EXPECT_FALSE(is_degraded(plan(), "trusted-policy")) << "sticky, as /tmp";
}

TEST_F(TrustedPolicy, OfAnotherUserIsNot) {
  canned.files->owner(kFile, 4321, 4321);
  expect_untrusted("file");
  canned.files->owner(kFile, 0, 0);
  EXPECT_FALSE(is_degraded(plan(), "trusted-policy"));
  canned.files->owner("/home/me/cfg", 4321, 4321);
  expect_untrusted("directory");
}

TEST_F(TrustedPolicy, InReachOfTheRunIsNotAndTheConsequenceIsSaid) {
  use(policy_with({{"filesystem.write", "[\"/home/me/cfg\"]"}}));
  expect_untrusted("live grant");
  EXPECT_THAT(plan().notes, testing::Contains(HasSubstr("a program could change what the next")));
  use(policy_with({{"filesystem.read", "[\"/home/me/cfg\"]"}}));
  EXPECT_FALSE(is_degraded(plan(), "trusted-policy"));
  for (const char* mode : {"\"empty\"", "\"overlay\"", "\"read-only\""}) {
    use(policy_with({{"filesystem.workspace.mode", mode}}), "/home/me/project/p.toml");
    EXPECT_FALSE(is_degraded(plan(), "trusted-policy")) << mode;
    EXPECT_THAT(plan().notes, testing::IsEmpty()) << mode;
  }
  use(policy_with({{"filesystem.workspace.mode", "\"read-write\""}}), "/home/me/project/p.toml");
  expect_untrusted("live workspace");
}

TEST_F(PlanTest, AnUnknownRequirementIsAUsageError) {
  const Error failure = error(requiring({"memory"}));
  EXPECT_EQ(failure.kind, ErrorKind::usage);
  EXPECT_THAT(failure.hint, HasSubstr("memory.cgroup"));
}

TEST_F(PlanTest, WithoutScopesTheHostsNetworkCostsUnixSockets) {
  set("network.mode", "\"host\"");
  EXPECT_FALSE(is_degraded(plan(), "network.mode"));
  canned.host.landlock_abi = 5;
  EXPECT_TRUE(is_degraded(plan(), "network.mode"));
}

TEST_F(PlanTest, WithoutScopesCallsOfASessionReachEachOthersAbstractSockets) {
  const auto told = [](const Plan& decided) {
    return std::ranges::count_if(decided.degraded, [](const Degraded& each) {
      return each.instead.find("another's abstract sockets") != std::string::npos;
    });
  };
  RunRequest held = request({});
  held.hold = true;
  for (const int abi : {0, 5, 6}) {
    canned.host.landlock_abi = abi;
    EXPECT_EQ(told(plan(held)), abi < 6 ? 1 : 0) << abi;
    EXPECT_EQ(told(plan()), 0) << abi;
  }
}

TEST_F(PlanTest, ALiveGrantAndWhatItLiesInMakeNoSpecialFiles) {
  canned.files->directory("/tmp/data");
  canned.files->directory("/srv/data");
  policy = policy_with({{"filesystem.write", R"(["/tmp/data"])"}});
  Plan decided = plan();
  EXPECT_FALSE(step_at(decided, "/tmp/data")->rights.special);
  EXPECT_FALSE(step_at(decided, "/tmp")->rights.special);
  EXPECT_EQ(variable(decided, "TMPDIR"), "/dev/shm");
  EXPECT_TRUE(step_at(decided, "/home/sandbox")->rights.special);
  EXPECT_TRUE(decided.filter.context.files_reach_host);
  EXPECT_FALSE(decided.filter.context.special_files_reach_host);

  policy = policy_with({{"filesystem.write", R"([{ source = "/tmp/data", special = true }])"}});
  decided = plan();
  EXPECT_TRUE(step_at(decided, "/tmp/data")->rights.special);
  EXPECT_TRUE(step_at(decided, "/tmp")->rights.special);
  EXPECT_EQ(variable(decided, "TMPDIR"), "/tmp");

  policy = policy_with({{"filesystem.write", R"([{ source = "/tmp", target = "/t", special = true },
                                { source = "/tmp/data", target = "/t/data" }])"}});
  EXPECT_TRUE(step_at(plan(), "/t")->rights.special);
  canned.files->file("/tmp/file", "");
  policy = policy_with({{"filesystem.write", R"(["/tmp/file"])"}});
  EXPECT_TRUE(step_at(plan(), "/tmp")->rights.special);

  canned.files->directory("/var/tmp/data");  // the same private directory by another name
  policy = policy_with({{"filesystem.write", R"(["/var/tmp/data"])"}});
  decided = plan();
  EXPECT_FALSE(step_at(decided, "/var/tmp")->rights.special);
  EXPECT_FALSE(step_at(decided, "/tmp")->rights.special);

  policy = policy_with({{"filesystem.write", R"(["/srv/data"])"}});
  EXPECT_TRUE(step_at(plan(), "/tmp")->rights.special);
  policy = policy_with({{"filesystem.read", R"(["/srv/data"])"}});
  EXPECT_FALSE(plan().filter.context.files_reach_host);
}

TEST_F(PlanTest, WithoutLandlockTheFilterKeepsSpecialFilesOut) {
  canned.files->directory("/srv/data");
  for (const bool has_landlock : {false, true}) {
    canned.host.landlock_abi = has_landlock ? 7 : 0;
    policy = policy_with({{"filesystem.write", R"(["/srv/data"])"},
                          {"filesystem.landlock", has_landlock ? "false" : "true"}});
    Plan decided = plan();
    EXPECT_TRUE(decided.filter.context.special_files_reach_host);
    EXPECT_TRUE(is_degraded(decided, "filesystem.write"));
    policy = policy_with({{"filesystem.write", R"([{ source = "/srv/data", special = true }])"},
                          {"filesystem.landlock", has_landlock ? "false" : "true"}});
    decided = plan();
    EXPECT_FALSE(decided.filter.context.special_files_reach_host);
    EXPECT_FALSE(is_degraded(decided, "filesystem.write"));
  }
}

}  // namespace
}  // namespace sbx::plan
