#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "fake_sandbox.hpp"

namespace sbx::test {
namespace {

struct TenGigabytes : testing::TestWithParam<bool> {};

TEST_P(TenGigabytes, AreCountedInLessThanEightMebibytes) {
  constexpr std::uint64_t kTotal = 10'000'000'000;
  FakeRun run{.main = [] {
    const std::string block(65536, 'y');
    for (std::uint64_t left = kTotal; left > 0;) {
      const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(left, block.size()));
      const ssize_t written = ::write(1, block.data(), step);
      if (written < 0) return 1;
      left -= static_cast<std::uint64_t>(written);
    }
    return 0;
  }};
  run.settings.capture = GetParam();
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(seen.out.bytes, kTotal);
  EXPECT_LT(seen.grown_kib, kMostGrowthKib);
}

INSTANTIATE_TEST_SUITE_P(Flood, TenGigabytes, testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "Captured" : "PassedThrough");
});

}  // namespace
}  // namespace sbx::test
