#include "supervise/memory_meter.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/unique_fd.hpp"

namespace sbx::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kPage = 4096;

/// A /proc of files: what a process would say that has pages in the swap space, which tests can't
/// give it.
class MemoryMeterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/sbx-proc-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directories(folder_ / "1");
    proc_ = UniqueFd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(int number, const char* file, const std::string& text) const {
    std::ofstream(folder_ / std::to_string(number) / file) << text;
  }
  [[nodiscard]] int proc() const { return proc_.get(); }

  void process(int number, std::uint64_t addresses, std::uint64_t resident,
               const std::string& status, const std::string& rollup = "") {
    const auto own = folder_ / std::to_string(number);
    std::filesystem::create_directories(own);
    std::ofstream(own / "statm") << addresses / kPage << ' ' << resident / kPage << " 0 0 0 0 0\n";
    std::ofstream(own / "status") << status;
    std::ofstream(own / "smaps_rollup") << rollup;
  }

  std::uint64_t look(std::uint64_t budget) {
    supervise::ProcessList processes(1, proc_.get());
    processes.refresh();
    supervise::MemoryMeter meter(processes, -1);
    return meter.look(budget);
  }

 private:
  std::filesystem::path folder_;
  UniqueFd proc_;
};

TEST_F(MemoryMeterTest, PageTablesAndSwappedPagesCount) {
  process(17, 16384 * kMiB, 8 * kMiB, "VmPTE:\t   20480 kB\nVmSwap:\t   51200 kB\n");
  EXPECT_EQ(look(256 * kMiB), (8 + 20 + 50) * kMiB);
}

TEST_F(MemoryMeterTest, PageTablesAloneAreBeyondABudget) {
  process(17, 65536 * kMiB, kMiB, "VmPTE:\t  102400 kB\nVmSwap:\t       0 kB\n");
  EXPECT_EQ(look(64 * kMiB), 101 * kMiB);
}

TEST_F(MemoryMeterTest, NobodyAsksForTheTablesOfAFewAddresses) {
  process(17, 512 * kMiB, 8 * kMiB, "VmPTE:\t   20480 kB\nVmSwap:\t   51200 kB\n");
  EXPECT_EQ(look(256 * kMiB), 8 * kMiB);
}

TEST_F(MemoryMeterTest, SwappedPagesOfSeveralCountOnceWhereThatDecides) {
  const std::string status = "VmPTE:\t    1024 kB\nVmSwap:\t   81920 kB\n";
  const std::string rollup =
      "Pss_Anon:\t    1024 kB\nPss_Shmem:\t    0 kB\nSwapPss:\t   40960 kB\n";
  process(17, 16384 * kMiB, 2 * kMiB, status, rollup);
  process(18, 16384 * kMiB, 2 * kMiB, status, rollup);
  EXPECT_EQ(look(128 * kMiB), 84 * kMiB);
}

/// What the machine says and /proc does not.
class MemoryAsideTest : public MemoryMeterTest {
 protected:
  std::uint64_t unmapped(std::uint64_t grown, const std::string& maps) {
    process(17, 64 * kMiB, 8 * kMiB, "VmPTE:\t 40 kB\n");
    put(17, "maps", maps);
    supervise::ProcessList processes(1, proc());
    processes.refresh();
    supervise::MemoryAside aside(processes);
    const supervise::MemoryAside::Known known{
        .addresses = 64 * kMiB, .shared = 10 * kMiB, .budget = 64 * kMiB, .matters = 4 * kMiB};
    (void)aside.look({.shared = 500 * kMiB}, known, {});
    return aside.look({.shared = 500 * kMiB + grown}, known, {}).unmapped;
  }
  static constexpr const char* kShared =
      "7f0000000000-7f0000001000 rw-s 00000000 00:01 1029  /dev/zero (deleted)\n";
};

TEST_F(MemoryAsideTest, SharedMemoryThatNobodyMapsIsTheirsWhoHaveSome) {
  EXPECT_EQ(unmapped(200 * kMiB, kShared), 190 * kMiB);
}

TEST_F(MemoryAsideTest, ItsNameIsFoundWhereverItStands) {
  for (const std::size_t before : {8170, 8180, 8190, 8200, 40000})
    EXPECT_EQ(unmapped(200 * kMiB, std::string(before, 'x') + kShared), 190 * kMiB) << before;
  EXPECT_EQ(unmapped(200 * kMiB, "7f00-7f01 rw-s 0 00:01 7  [anon_shmem:mine]\n"), 190 * kMiB);
}

TEST_F(MemoryAsideTest, ItIsAnothersWhereNobodyHasAny) {
  EXPECT_EQ(unmapped(200 * kMiB, "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n"), 0U);
}

TEST_F(MemoryAsideTest, WhoCannotBeAskedMayHaveSome) {
  EXPECT_EQ(unmapped(200 * kMiB, ""), 190 * kMiB);
}

TEST_F(MemoryAsideTest, WhatTheBudgetHoldsMayBeAnothers) {
  EXPECT_EQ(unmapped(70 * kMiB, kShared), 0U);
}

}  // namespace
}  // namespace sbx::test
