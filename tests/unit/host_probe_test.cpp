#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host/host.hpp"

namespace sbx::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class TemporaryDirectory : public testing::Test {
 protected:
  TemporaryDirectory() {
    char name[] = "/tmp/sbx-host-test-XXXXXX";
    directory_ = std::filesystem::canonical(::mkdtemp(name)).string();
  }
  ~TemporaryDirectory() override { std::filesystem::remove_all(directory_); }

  std::string in(const std::string& name) const { return directory_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(in(name)) << text;
  }

  std::string directory_;
  std::shared_ptr<const Files> files_ = real_files();
};

TEST(Probe, TellsWhoAndWhere) {
  const auto host = probe();
  ASSERT_TRUE(host.has_value()) << host.error().text();
  EXPECT_EQ(host->uid, ::geteuid());
  EXPECT_EQ(host->gid, ::getegid());
  EXPECT_EQ(host->working_directory, std::filesystem::current_path().string());
  EXPECT_THAT(host->cpus, Not(IsEmpty()));
  EXPECT_GT(host->memory_available_bytes, 0U);
  EXPECT_EQ(host->rlimits.size(), 8U);
}

TEST(Probe, HomeMustBelongToTheCaller) {
  const char* before = ::getenv("HOME");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("HOME", "relative", 1);
  EXPECT_NE(probe()->home, "relative");
  ::setenv("HOME", "/nonexistent", 1);
  EXPECT_NE(probe()->home, "/nonexistent");
  char own[] = "/tmp/sbx-home-XXXXXX";
  ASSERT_NE(::mkdtemp(own), nullptr);
  ::setenv("HOME", own, 1);
  EXPECT_EQ(probe()->home, own);
  ::setenv("HOME", (std::string(own) + "/").c_str(), 1);
  EXPECT_EQ(probe()->home, own);
  ::rmdir(own);
  ::setenv("HOME", saved.c_str(), 1);
}

TEST(Probe, MountsNameTheProcThatTheyAreReadFrom) {
  const auto all = mounts(*real_files());
  ASSERT_TRUE(all.has_value());
  EXPECT_THAT(*all, testing::Contains(testing::Field(&MountPoint::path, "/proc")));
}

TEST_F(TemporaryDirectory, LookDoesNotFollowLinksAndCanonicalDoes) {
  write("file", "12345");
  std::filesystem::create_symlink("file", in("link"));
  const auto facts = files_->look(in("link"));
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->type, FileType::symlink);
  EXPECT_EQ(files_->canonical(in("link")).value_or(""), in("file"));
  EXPECT_EQ(files_->link_target(in("link")).value_or(""), "file");
  EXPECT_EQ(files_->look(in("file"))->size, 5U);
}

TEST_F(TemporaryDirectory, MissingPathsTellTheirErrno) {
  EXPECT_EQ(files_->look(in("no")).error().errno_value, ENOENT);
  EXPECT_EQ(files_->canonical(in("no/such")).error().errno_value, ENOENT);
  EXPECT_EQ(files_->list(in("no")).error().errno_value, ENOENT);
  EXPECT_FALSE(files_->may_read(in("no")));
}

TEST_F(TemporaryDirectory, MagicLinksAreNoPaths) {
  EXPECT_FALSE(files_->canonical("/proc/self/exe").has_value());
  EXPECT_TRUE(files_->canonical("/proc/self/status").has_value());
}

TEST_F(TemporaryDirectory, ReadsNoMoreThanAskedAndDoesNotWaitForAFifo) {
  write("file", "12345");
  EXPECT_EQ(files_->read_head(in("file"), 3).value_or(""), "123");
  ASSERT_EQ(::mkfifo(in("fifo").c_str(), 0600), 0);
  EXPECT_EQ(files_->read_head(in("fifo"), 3).value_or("failed"), "");
}

TEST_F(TemporaryDirectory, ListsSortedWithTypes) {
  write("b", "");
  std::filesystem::create_directory(in("a"));
  const auto entries = files_->list(directory_);
  ASSERT_TRUE(entries.has_value());
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[0].type, FileType::directory);
  EXPECT_EQ((*entries)[1].type, FileType::regular);
}

}  // namespace
}  // namespace sbx::host
