#include "base/held.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace sbx::held {
namespace {

/// More in the slow form.
int rounds() {
  const char* const said = std::getenv("SBX_TEST_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  return said == nullptr ? 300 : std::atoi(said);
}

/// In memory where there is such a place: on a disk each new directory may take milliseconds.
std::string place() {
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : testing::TempDir();
}

class HeldTest : public testing::Test {
 protected:
  HeldTest() {
    std::string name = place() + "/sbx-held-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    directory_ = UniqueFd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~HeldTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::filesystem::path at(const std::string& name) const { return root_ / name; }
  void write(const std::string& name) const {
    std::filesystem::create_directories(at(name).parent_path());
    std::ofstream(at(name)) << "text";
  }
  [[nodiscard]] mode_t mode_of(const std::string& name) const {
    struct stat facts{};
    EXPECT_EQ(::lstat(at(name).c_str(), &facts), 0);
    return facts.st_mode & 07777;
  }
  [[nodiscard]] UniqueFd path_of(const std::string& name) const {
    return UniqueFd(::openat(directory_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  }
  [[nodiscard]] int directory() const { return directory_.get(); }

  std::filesystem::path root_;
  UniqueFd directory_;
};

/// Exchanges two names as fast as it can.
class Swapper {
 public:
  Swapper(int directory, std::string one, std::string other)
      : thread_([this, directory, one = std::move(one), other = std::move(other)] {
          while (!ends_)
            if (exchange({directory, one}, {directory, other})) ++swaps_;
        }) {}
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;
  ~Swapper() {
    ends_ = true;
    thread_.join();
  }
  [[nodiscard]] int swaps() const { return swaps_; }

 private:
  std::atomic<bool> ends_ = false;
  std::atomic<int> swaps_ = 0;
  std::thread thread_;
};

TEST_F(HeldTest, AModeIsThatOfTheFileThatIsHeldWhateverHasItsName) {
  write("file");
  write("victim");
  ASSERT_EQ(::chmod(at("file").c_str(), 0000), 0);
  ASSERT_EQ(::chmod(at("victim").c_str(), 0600), 0);
  const UniqueFd held = path_of("file");
  ASSERT_TRUE(rename({directory(), "file"}, {directory(), "moved"}));
  std::filesystem::create_symlink("victim", at("file"));
  EXPECT_TRUE(set_mode(held.get(), 0640));
  EXPECT_EQ(mode_of("moved"), 0640U);
  EXPECT_EQ(mode_of("victim"), 0600U);
}

TEST_F(HeldTest, ALinkThatIsHeldIsNotFollowed) {
  write("victim");
  ASSERT_EQ(::chmod(at("victim").c_str(), 0600), 0);
  std::filesystem::create_symlink("victim", at("link"));
  const UniqueFd held = path_of("link");
  EXPECT_FALSE(set_mode(held.get(), 0777));
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_FALSE(open_again(held.get(), O_RDONLY));
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  EXPECT_TRUE(set_times(held.get(), times));
  struct stat facts{};
  ASSERT_EQ(::stat(at("link").c_str(), &facts), 0);
  EXPECT_NE(facts.st_mtime, 1);
  ASSERT_EQ(::lstat(at("link").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mtime, 1);
}

TEST_F(HeldTest, AFileIsOpenedAgainUnderWhateverName) {
  write("file");
  std::filesystem::create_directory(at("directory"));
  const UniqueFd file = path_of("file");
  const UniqueFd directory_held = path_of("directory");
  ASSERT_TRUE(exchange({directory(), "file"}, {directory(), "directory"}));
  const auto again = open_again(file.get(), O_RDONLY);
  ASSERT_TRUE(again);
  EXPECT_EQ(identity_of(again->get()), identity_of(file.get()));
  const auto entries = open_again(directory_held.get(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(entries);
  EXPECT_EQ(identity_of(entries->get()), identity_of(directory_held.get()));
}

TEST_F(HeldTest, BeneathFollowsNoLinkAndLeadsNowhereElse) {
  write("inner/file");
  std::filesystem::create_directory_symlink("inner", at("link"));
  const auto inner = open_beneath(directory(), "inner", O_PATH);
  ASSERT_TRUE(inner);
  EXPECT_TRUE(open_beneath(directory(), "inner/file", O_RDONLY));
  EXPECT_FALSE(open_beneath(directory(), "link/file", O_RDONLY));
  EXPECT_FALSE(open_beneath(inner->get(), "..", O_PATH));
  EXPECT_FALSE(open_beneath(inner->get(), "/", O_PATH));
}

TEST_F(HeldTest, ANameIsOneName) {
  EXPECT_DEATH((void)remove_file(directory(), "a/b"), "");
  EXPECT_DEATH((void)remove_directory(directory(), ".."), "");
  EXPECT_DEATH((void)make_directory(directory(), "", 0700), "");
}

TEST_F(HeldTest, APathIsMadeWhereItIsMissingThroughLinksOfTheCaller) {
  std::filesystem::create_directory(at("real"));
  std::filesystem::create_directory_symlink("real", at("link"));
  const auto made = open_or_make_path(at("link/a/b"), 0700);
  ASSERT_TRUE(made);
  EXPECT_EQ(mode_of("real/a/b"), 0700U);
  write("file");
  const auto in_file = open_or_make_path(at("file/a"), 0700);
  ASSERT_FALSE(in_file);
  EXPECT_EQ(in_file.error().code, "cannot-make");
}

TEST_F(HeldTest, AFileWithoutANameGetsOne) {
  const UniqueFd file(::openat(directory(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file.valid()) GTEST_SKIP() << "this file system makes no file without a name";
  ASSERT_TRUE(link_file(file.get(), directory(), "name"));
  EXPECT_EQ(identity_of(path_of("name").get()), identity_of(file.get()));
  EXPECT_FALSE(link_file(file.get(), directory(), "name"));
  EXPECT_EQ(errno, EEXIST);
}

TEST_F(HeldTest, ADirectoryThatIsMadeIsNeverOneThatWasSwapped) {
  write("victim/content");
  ASSERT_EQ(::chmod(at("victim").c_str(), 0700), 0);
  const UniqueFd victim = path_of("victim");
  int opened = 0;
  {
    const Swapper swapper(directory(), "made", "victim");
    for (int round = 0; round < rounds(); ++round) {
      if (const auto made = make_and_open(directory(), "made")) {
        ++opened;
        ASSERT_TRUE(set_mode(made->get(), 0777));
      }
      // Only the one that was made is empty; then the other one gets its name back.
      while (!remove_directory(directory(), "made") && !remove_directory(directory(), "victim")) {
      }
      (void)rename_to_free({directory(), "made"}, {directory(), "victim"});
    }
    struct stat facts{};
    ASSERT_EQ(::fstat(victim.get(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0700U);
  }
  RecordProperty("opened", opened);
}

TEST_F(HeldTest, ADirectoryIsMadeWhenNobodySwapsIt) {
  for (int round = 0; round < rounds(); ++round) {
    const auto made = make_and_open(directory(), "made");
    ASSERT_TRUE(made);
    ASSERT_TRUE(set_mode(made->get(), 0755));
    EXPECT_EQ(mode_of("made"), 0755U);
    ASSERT_TRUE(remove_directory(directory(), "made"));
  }
}

}  // namespace
}  // namespace sbx::held
