#include "supervise/meters/memory_meter.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "supervise/meters/fileless_memory.hpp"

namespace sbx::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

/// The device, as in /proc/PID/maps, of the tmpfs where this kernel keeps fileless shared memory.
std::string fileless_device() {
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  struct stat facts{};
  EXPECT_EQ(::fstat(file.get(), &facts), 0);
  char text[24];
  std::snprintf(text, sizeof text, "%02x:%02x", major(facts.st_dev), minor(facts.st_dev));
  return text;
}

/// A mapping of 4 MiB, with its lines in smaps.
std::string mapping(const std::string& access, const std::string& device, const std::string& name,
                    int resident = -1) {
  std::string text = "7f0000000000-7f0000400000 " + access + " 00000000 " + device + " 7   " + name;
  if (resident >= 0)
    text += "\nSize:               4096 kB\nRss:                9999 kB\nPss:                " +
            std::to_string(resident) + " kB\nPss_Dirty:          9999 kB\nVmFlags: rd wr";
  return text + "\n";
}

/// A fake /proc in files: what a process with swapped pages would show, which tests can't produce.
class MemoryMeterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/sbx-proc-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::filesystem::create_directories(directory_ / "1");
    proc_ = UniqueFd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void put(int number, const char* file, const std::string& text) const {
    std::ofstream(directory_ / std::to_string(number) / file) << text;
  }
  [[nodiscard]] int proc() const { return proc_.get(); }

  void process(int number, std::uint64_t addresses, std::uint64_t resident,
               const std::string& status, const std::string& rollup = "") {
    const auto own = directory_ / std::to_string(number);
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
  std::filesystem::path directory_;
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

TEST_F(MemoryMeterTest, TablesThatStandForNothingAreNotReadAndTheSwappedPagesCountAll) {
  const std::string status = "VmPTE:\t    3072 kB\nVmSwap:\t   61440 kB\n";
  const std::string rollup = "Pss_Anon:\t    1024 kB\nSwapPss:\t   30720 kB\n";
  process(17, 16384 * kMiB, 2 * kMiB, status, rollup);
  process(18, 16384 * kMiB, 2 * kMiB, status, rollup);
  EXPECT_EQ(look(128 * kMiB), 2 * (3 + 2 + 60) * kMiB);
}

TEST_F(MemoryMeterTest, AFewOfThemAreRead) {
  const std::string status = "VmPTE:\t    1024 kB\nVmSwap:\t   63488 kB\n";
  const std::string rollup = "Pss_Anon:\t    1024 kB\nSwapPss:\t   31744 kB\n";
  process(17, 16384 * kMiB, 2 * kMiB, status, rollup);
  process(18, 16384 * kMiB, 2 * kMiB, status, rollup);
  EXPECT_EQ(look(128 * kMiB), 2 * (1 + 1 + 31) * kMiB);
}

TEST_F(MemoryMeterTest, SoManyOfAllProcessesAreRead) {
  const std::string status = "VmPTE:\t    1024 kB\nVmSwap:\t   40960 kB\n";
  const std::string rollup = "Pss_Anon:\t    1024 kB\nSwapPss:\t   20480 kB\n";
  for (const int number : {17, 18, 19}) process(number, 16384 * kMiB, 2 * kMiB, status, rollup);
  EXPECT_EQ(look(128 * kMiB), (3 + 2 * (1 + 20) + (2 + 40)) * kMiB);
}

/// Two processes that share all their memory and exceed the budget by their counts.
class MemoryWalkTest : public MemoryMeterTest {
 protected:
  void SetUp() override {
    MemoryMeterTest::SetUp();
    share(50);
    processes_.emplace(1, proc());
    processes_->refresh();
    meter_.emplace(*processes_, -1);
    EXPECT_EQ(meter_->look(kBudget), 100 * kMiB);
  }
  void share(std::uint64_t each) {
    for (const int number : {17, 18})
      process(number, 512 * kMiB, 100 * kMiB, "",
              "Pss_Anon:\t" + std::to_string(each * 1024) + " kB\n");
  }
  static constexpr std::uint64_t kBudget = 128 * kMiB;
  std::optional<supervise::ProcessList> processes_;
  std::optional<supervise::MemoryMeter> meter_;
};

TEST_F(MemoryWalkTest, IsNotRepeatedWhileNothingCame) {
  share(90);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(meter_->look(kBudget), 100 * kMiB);
}

TEST_F(MemoryWalkTest, IsRepeatedSomeTimeAfterAFault) {
  share(90);
  put(17, "stat", "17 (name) R 1 1 1 0 -1 0 1 0 0 0\n");
  while (meter_->look(kBudget) <= kBudget) continue;
  EXPECT_EQ(meter_->look(kBudget), 180 * kMiB);
}

/// Memory that only the machine's totals show, not /proc: it is reported and doesn't count.
class MemoryAsideTest : public MemoryMeterTest {
 protected:
  bool may_keep_unmapped(std::uint64_t grown, const std::string& maps) {
    process(17, 64 * kMiB, 8 * kMiB, "VmPTE:\t 40 kB\n");
    put(17, "maps", maps);
    supervise::ProcessList processes(1, proc());
    processes.refresh();
    supervise::MemoryAside aside(processes);
    const supervise::MemoryAside::Known known{
        .addresses = 64 * kMiB, .shared = 10 * kMiB, .budget = 64 * kMiB, .matters = 4 * kMiB};
    (void)aside.look({.shared = 500 * kMiB}, known, {});
    (void)aside.look({.shared = 500 * kMiB + grown}, known, {});
    return aside.may_keep_unmapped();
  }
  const std::string kShared = mapping("rw-s", fileless_device(), "/dev/zero (deleted)");
  const std::string kPrivate = mapping("rw-p", "00:00", "");
};

TEST_F(MemoryAsideTest, SharedMemoryThatNobodyMapsMayBeTheirsWhoHaveSome) {
  EXPECT_TRUE(may_keep_unmapped(200 * kMiB, kShared));
}

TEST_F(MemoryAsideTest, ItIsFoundWhereverItStands) {
  std::string maps;
  while (maps.size() < 80000) {
    EXPECT_TRUE(may_keep_unmapped(200 * kMiB, maps + kShared)) << maps.size();
    for (int i = 0; i < 20; ++i) maps += kPrivate;
  }
}

TEST_F(MemoryAsideTest, ItIsAnothersWhereNobodyHasAny) {
  EXPECT_FALSE(may_keep_unmapped(200 * kMiB, kPrivate));
}

TEST_F(MemoryAsideTest, WhoCannotBeAskedMayHaveSome) {
  EXPECT_TRUE(may_keep_unmapped(200 * kMiB, ""));
}

TEST_F(MemoryAsideTest, WhatTheBudgetHoldsIsNotWorthAWord) {
  EXPECT_FALSE(may_keep_unmapped(70 * kMiB, kShared));
}

class FilelessMemoryTest : public MemoryMeterTest {
 protected:
  supervise::FilelessMemory ask(const std::string& text) {
    put(1, "smaps", text);
    return supervise::fileless_memory(proc(), "1/smaps", mappings_);
  }
  const std::string device_ = fileless_device();
  const std::string shared_ = mapping("rw-s", device_, "/dev/zero (deleted)", 300);
  std::size_t mappings_ = 10;
};

TEST_F(FilelessMemoryTest, IsKnownByItsDeviceWhateverItIsCalled) {
  const auto found = ask(shared_ + mapping("r--s", device_, "[anon_shmem:Pss: 77 kB]", 40) +
                         mapping("rw-s", "ff:ff", "/tmp/dev/zero (deleted)", 5000) +
                         mapping("rw-p", "00:00", "", 5000));
  EXPECT_EQ(found.size, 8 * kMiB);
  EXPECT_EQ(found.resident, 340U * 1024);
  EXPECT_EQ(mappings_, 6U);
}

TEST_F(FilelessMemoryTest, CopiesOfItInAPrivateMappingAreNotOfIt) {
  const auto found = ask(mapping("rw-p", device_, "/memfd:x (deleted)", 300));
  EXPECT_EQ(found.size, 4 * kMiB);
  EXPECT_EQ(found.resident, 0U);
}

TEST_F(FilelessMemoryTest, ALongNameHidesNothing) {
  EXPECT_EQ(ask(mapping("rw-p", "ff:ff", "/" + std::string(16000, 'x'), 9) + shared_).resident,
            300U * 1024);
}

TEST_F(FilelessMemoryTest, OfMoreMappingsThanMayBeReadTheSizeIsNotKnown) {
  mappings_ = 2;
  const auto found = ask(shared_ + shared_ + shared_);
  EXPECT_EQ(found.size, UINT64_MAX);
  EXPECT_EQ(found.resident, 600U * 1024);
  EXPECT_EQ(mappings_, 0U);
}

TEST_F(FilelessMemoryTest, OfWhoCannotBeAskedTheSizeIsNotKnown) {
  const auto found = ask("");
  EXPECT_EQ(found.size, UINT64_MAX);
  EXPECT_EQ(found.resident, 0U);
}

}  // namespace
}  // namespace sbx::test
