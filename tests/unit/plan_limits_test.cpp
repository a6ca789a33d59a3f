#include <set>

#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::Contains;
using testing::SizeIs;

const ProcessLimit* limit(const Plan& plan, int resource) {
  for (const ProcessLimit& each : plan.process_limits)
    if (each.resource == resource) return &each;
  return nullptr;
}

TEST_F(PlanTest, ProcessLimitsFollowThePolicy) {
  policy = policy_with({{"limits.open_files", "77"},
                        {"limits.processes", "5"},
                        {"limits.file_size", "\"3M\""},
                        {"limits.cpu_time", "\"1500ms\""}});
  const Plan decided = plan();
  EXPECT_EQ(limit(decided, RLIMIT_NOFILE)->hard, 77U);
  EXPECT_EQ(limit(decided, RLIMIT_FSIZE)->hard, std::uint64_t{3} << 20);
  EXPECT_EQ(limit(decided, RLIMIT_CORE)->soft, 1U);
  EXPECT_EQ(limit(decided, RLIMIT_NPROC)->hard, 6U) << "PID 1 counts too";
  EXPECT_EQ(limit(decided, RLIMIT_CPU)->hard, 3U) << "2 s, and one more for the supervisor's sum";
  EXPECT_EQ(limit(decided, RLIMIT_NOFILE)->origin.text(), "--set");
}

TEST_F(PlanTest, WhereACgroupCountsTasksItSpeaksBeforeTheLimitOfTheProcess) {
  set("limits.processes", "5");
  canned.host.control_group.processes = host::Means::cgroup_v2;
  EXPECT_EQ(limit(plan(), RLIMIT_NPROC)->hard, 12U);
}

TEST_F(PlanTest, TheSmallerOfPolicyAndTheGroupAroundHoldsAndIsSaid) {
  EXPECT_FALSE(is_degraded(plan(), "limits.processes"));
  canned.host.control_group.granted = {
      .memory_bytes = std::uint64_t{1} << 20, .processes = 3, .cpus = 0.5};
  const Plan decided = plan();
  EXPECT_EQ(decided.budgets.memory.count, std::uint64_t{1} << 20);
  EXPECT_EQ(decided.budgets.processes, 3U);
  EXPECT_DOUBLE_EQ(decided.budgets.cpus, 0.5);
  EXPECT_THAT(decided.affinity, SizeIs(1));
  for (const char* key : {"limits.memory", "limits.processes", "limits.cpus"})
    EXPECT_TRUE(is_degraded(decided, key)) << key;
  canned.host.control_group.granted = {
      .memory_bytes = std::uint64_t{1} << 50, .processes = 1 << 30, .cpus = 500};
  EXPECT_FALSE(is_degraded(plan(), "limits.processes"));
}

TEST_F(PlanTest, ReservedAddressSpaceHasNoLimit) {
  EXPECT_EQ(limit(plan(), RLIMIT_DATA), nullptr);
  EXPECT_EQ(limit(plan(), RLIMIT_AS), nullptr);
}

TEST_F(PlanTest, QueuedSignalsFollowTheNumberOfProcesses) {
  set("limits.processes", "10");
  EXPECT_EQ(limit(plan(), RLIMIT_SIGPENDING)->hard, 1024U + 40U);
  canned.host.rlimits[RLIMIT_SIGPENDING] = {.soft = 7, .hard = 7};
  EXPECT_EQ(limit(plan(), RLIMIT_SIGPENDING)->hard, 7U);
}

TEST_F(PlanTest, TheCallersHardLimitsAreNotExceededAndSaid) {
  EXPECT_FALSE(is_degraded(plan(), "limits.open_files"));
  canned.host.rlimits[RLIMIT_NOFILE] = {.soft = 32, .hard = 32};
  const Plan decided = plan();
  EXPECT_EQ(limit(decided, RLIMIT_NOFILE)->hard, 16U) << "sbx needs more than the program";
  EXPECT_TRUE(is_degraded(decided, "limits.open_files"));
  canned.host.rlimits[RLIMIT_NOFILE] = {.soft = 1024, .hard = 1536};
  EXPECT_EQ(limit(plan(), RLIMIT_NOFILE)->hard, 1024U);
  EXPECT_FALSE(is_degraded(plan(), "limits.open_files"));
}

TEST_F(PlanTest, AnEndlessStackIsBroughtDown) {
  EXPECT_EQ(limit(plan(), RLIMIT_STACK)->soft, std::uint64_t{8} << 20);
  canned.host.rlimits[RLIMIT_STACK] = {.soft = RLIM_INFINITY, .hard = RLIM_INFINITY};
  EXPECT_EQ(limit(plan(), RLIMIT_STACK)->soft, std::uint64_t{8} << 20);
  canned.host.rlimits[RLIMIT_STACK] = {.soft = std::uint64_t{64} << 20, .hard = RLIM_INFINITY};
  EXPECT_EQ(limit(plan(), RLIMIT_STACK)->soft, std::uint64_t{64} << 20);
}

TEST_F(PlanTest, AffinityIsAsManyOfTheCallersCpusAsTheBudgetRoundsUpTo) {
  canned.host.cpus = {2, 3, 5, 7};
  set("limits.cpus", "1.5");
  const Plan decided = plan();
  ASSERT_THAT(decided.affinity, SizeIs(2));
  for (const int cpu : decided.affinity) EXPECT_THAT(canned.host.cpus, Contains(cpu));
  EXPECT_NE(decided.affinity[0], decided.affinity[1]);
  EXPECT_TRUE(is_degraded(decided, "limits.cpus"));
  set("limits.cpus", "2.0");
  EXPECT_FALSE(is_degraded(plan(), "limits.cpus"));
  canned.host.control_group.granted.cpus = 0.5;
  EXPECT_THAT(plan().degraded,
              Contains(testing::Field(&Degraded::instead, "0.50 CPUs instead of 2.00")));
  EXPECT_THAT(
      plan().degraded,
      testing::Not(Contains(testing::Field(&Degraded::why, testing::HasSubstr("fraction")))));
}

TEST_F(PlanTest, AffinityVaries) {
  set("limits.cpus", "1.0");
  std::set<int> seen;
  for (int run = 0; run < 200; ++run) seen.insert(plan().affinity.front());
  EXPECT_THAT(seen, SizeIs(8)) << "of 200 runs none took one of 8 CPUs";
}

TEST_F(PlanTest, MoreCpusThanThereAreIsAllOfThem) {
  canned.host.cpus = {4};
  set("limits.cpus", "8.5");
  const Plan decided = plan();
  EXPECT_THAT(decided.affinity, testing::ElementsAre(4));
  EXPECT_FALSE(is_degraded(decided, "limits.cpus"));
}

}  // namespace
}  // namespace sbx::plan
