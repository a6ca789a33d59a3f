#include "supervise/verdict.hpp"

#include <gtest/gtest.h>

namespace sbx::supervise {
namespace {

constexpr std::uint64_t kBudget = std::uint64_t{256} << 20;

std::vector<std::string> names_of_limits(const BudgetsSeen& seen) {
  Settings settings;
  settings.memory = Bytes{kBudget};
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

std::vector<std::string> names_after(const Verdict& verdict, std::uint64_t peak,
                                     std::uint64_t limit) {
  Settings settings;
  settings.processes = limit;
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

}  // namespace
}  // namespace sbx::supervise
