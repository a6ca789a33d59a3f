#include "supervise/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sbx::supervise {
namespace {

constexpr std::uint64_t kBudget = std::uint64_t{256} << 20;

std::vector<std::string> names_of_limits(const BudgetsSeen& seen) {
  Settings settings;
  settings.budgets.memory = Bytes{kBudget};
  Measured measured;
  measured.budgets = seen;
  std::vector<std::string> names;
  for (const LimitMet& met : limits_met(OverBudget{Budget::memory}, settings, measured))
    names.push_back(met.limit);
  return names;
}

TEST(PolledMemory, SeenAboveTheBudgetTheBudgetWasMetWhateverTheGroupAroundCounted) {
  EXPECT_EQ(names_of_limits({.memory_peak = 2 * kBudget, .outer_kill = true, .memory_over = true}),
            std::vector<std::string>{"memory"});
}

TEST(PolledMemory, AKillThatTheGroupAroundCountedBelowTheBudgetIsNotTheBudgets) {
  EXPECT_EQ(names_of_limits({.memory_peak = kBudget / 2, .outer_kill = true}),
            std::vector<std::string>{});
}

TEST(PolledMemory, TheVerdictSaysWhatSocketsHold) {
  Settings settings;
  settings.budgets.memory = Bytes{kBudget};
  Measured measured;
  measured.budgets = {.memory_peak = kBudget + (8U << 20), .memory_over = true};
  EXPECT_EQ(detail_of(OverBudget{Budget::memory}, settings, measured),
            "memory limit of 256 MiB reached (limits.memory)");
  measured.budgets.largest = {.name = "python3.11", .bytes = 2 * kBudget};
  EXPECT_EQ(detail_of(OverBudget{Budget::memory}, settings, measured),
            "memory limit of 256 MiB reached (limits.memory; largest process: python3.11)");
  measured.budgets.largest = {};
  measured.budgets.memory_in_sockets = kBudget / 2;
  EXPECT_EQ(detail_of(OverBudget{Budget::memory}, settings, measured),
            "memory limit of 256 MiB reached (limits.memory; 128 MiB in sockets)");
}

std::vector<std::string> names_after(const Verdict& verdict, std::uint64_t peak,
                                     std::uint64_t limit) {
  Settings settings;
  settings.budgets.processes = limit;
  Measured measured;
  measured.budgets = {.processes_peak = peak, .processes_evidence = Evidence::sampled};
  std::vector<std::string> names;
  for (const LimitMet& met : limits_met(verdict, settings, measured)) names.push_back(met.limit);
  return names;
}

TEST(SampledProcesses, AFailureNearTheLimitMetIt) {
  EXPECT_EQ(names_after(Exited{1}, 21, 24), std::vector<std::string>{"processes"});
}

TEST(SampledProcesses, NearTheLimitItIsNotMetBySuccessNorWhereItIsSmallNorByLess) {
  EXPECT_EQ(names_after(Exited{0}, 23, 24), std::vector<std::string>{});
  EXPECT_EQ(names_after(Exited{1}, 3, 4), std::vector<std::string>{});
  EXPECT_EQ(names_after(Exited{1}, 20, 24), std::vector<std::string>{});
}

std::string detail_after(std::uint64_t written, std::uint64_t grown, bool to_grants = true,
                         bool to_shared_memory = false) {
  Settings settings;
  settings.budgets.disk = Bytes{kBudget};
  settings.disk_is_host_too = to_grants;
  settings.shared_memory_is_lent = to_shared_memory;
  Measured measured;
  measured.budgets = {.written = written, .grown = grown};
  return detail_of(OverBudget{Budget::disk}, settings, measured);
}

TEST(LiveGrants, TheVerdictSaysWhatIsTheGrowthOfAFileSystem) {
  EXPECT_EQ(detail_after(2 * kBudget, 0),
            "disk budget of 256 MiB reached, 512 MiB written to live grants (limits.disk)");
  EXPECT_EQ(detail_after(2 * kBudget, 2 * kBudget),
            "disk budget of 256 MiB reached, 512 MiB written to live grants, by the growth of a "
            "file system in memory, whoever wrote there (limits.disk)");
  EXPECT_EQ(detail_after(2 * kBudget, kBudget),
            "disk budget of 256 MiB reached, 512 MiB written to live grants, 256 MiB of it by the "
            "growth of a file system in memory, whoever wrote there (limits.disk)");
}

TEST(SharedMemory, TheVerdictSaysThatItWasWrittenTo) {
  EXPECT_THAT(detail_after(2 * kBudget, 2 * kBudget, false, true),
              testing::HasSubstr("512 MiB written to /dev/shm, by the growth of a file system"));
  EXPECT_THAT(detail_after(2 * kBudget, kBudget, true, true),
              testing::HasSubstr("written to live grants and /dev/shm, 256 MiB of it by"));
}

}  // namespace
}  // namespace sbx::supervise
