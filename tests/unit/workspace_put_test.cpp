#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "workspace/apply.hpp"
#include "workspace/collect.hpp"
#include "workspace/put.hpp"

namespace sbx::workspace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// A directory of the test's own.
class PutTest : public testing::Test {
 protected:
  PutTest() {
    std::string name = testing::TempDir() + "/sbx-put-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    directory_ = UniqueFd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~PutTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::filesystem::path at(const std::string& name) const { return root_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(at(name).parent_path());
    std::ofstream(at(name)) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(at(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& below = ".") const {
    std::vector<std::string> list;
    for (const auto& each : std::filesystem::directory_iterator(at(below)))
      list.push_back(each.path().filename());
    return list;
  }
  [[nodiscard]] struct stat facts(const std::string& name) const {
    struct stat found{};
    EXPECT_EQ(::lstat(at(name).c_str(), &found), 0);
    return found;
  }
  [[nodiscard]] UniqueFd open(const std::string& name) const {
    return UniqueFd(::open(at(name).c_str(), O_RDONLY | O_CLOEXEC));
  }
  Status put(const std::string& from, const std::string& to, mode_t mode = 0644,
             const Expected& expected = {}) const {
    const UniqueFd source = open(from);
    return put_file(source.get(), directory_.get(), to, mode, own(), expected);
  }
  static Owner own() { return {::geteuid(), ::getegid()}; }

  std::filesystem::path root_;
  UniqueFd directory_;
};

TEST_F(PutTest, ACopyThatIsCancelledInTheMiddleOfAFileEndsThere) {
  constexpr std::uint64_t kSize = 8 << 20;
  write("large", std::string(kSize, 'x'));
  const UniqueFd from = open("large");
  const auto copied_until = [&](std::uint64_t cancelled_at) {
    const UniqueFd to(::open(at("copy").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    std::uint64_t sum = 0;
    const Status done = copy_content(
        from.get(), to.get(), [&](std::uint64_t bytes) { sum += bytes; },
        [&] { return sum >= cancelled_at; });
    EXPECT_EQ(done.has_value(), sum == kSize);
    if (!done) EXPECT_EQ(done.error().errno_value, ECANCELED);
    return sum;
  };
  const std::uint64_t part = copied_until(1);
  EXPECT_GT(part, 0U);
  EXPECT_LT(part, kSize);
  EXPECT_EQ(copied_until(kSize + 1), kSize);
}

TEST_F(PutTest, AFileIsReplacedByANewOne) {
  write("new", "new");
  write("old", "old");
  const ino_t before = facts("old").st_ino;
  ASSERT_TRUE(put("new", "old"));
  EXPECT_EQ(read("old"), "new");
  EXPECT_NE(facts("old").st_ino, before);
  EXPECT_THAT(names(), UnorderedElementsAre("new", "old"));
}

TEST_F(PutTest, ModesAreKeptWithoutSetUidAndTheLike) {
  write("new", "new");
  for (const mode_t mode : {0400U, 0644U, 0755U}) {
    ASSERT_TRUE(put("new", "file", mode | S_ISUID | S_ISGID | S_ISVTX));
    EXPECT_EQ(facts("file").st_mode & 07777, mode);
  }
}

TEST_F(PutTest, AfterAFailureTheOldFileIsThereAndNothingElse) {
  write("old", "old");
  const UniqueFd unreadable(::open(at("old").c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(put_file(unreadable.get(), directory_.get(), "old", 0644, own()));
  write("new", "new");
  EXPECT_FALSE(put("new", std::string(300, 'n')));  // longer than NAME_MAX
  write("taken/inner", "");
  EXPECT_FALSE(put("new", "taken"));  // a directory
  EXPECT_EQ(read("old"), "old");
  EXPECT_THAT(names(), UnorderedElementsAre("old", "new", "taken"));
}

TEST_F(PutTest, ALinkInThePlaceIsReplacedAndNotFollowed) {
  write("new", "new");
  write("victim", "old");
  std::filesystem::create_symlink("victim", at("link"));
  ASSERT_TRUE(put("new", "link"));
  EXPECT_EQ(read("victim"), "old");
  EXPECT_TRUE(S_ISREG(facts("link").st_mode));
}

TEST_F(PutTest, ALinkOnTheWayIsRefused) {
  write("elsewhere/file", "");
  std::filesystem::create_directory_symlink("elsewhere", at("link"));
  EXPECT_FALSE(make_directory(directory_.get(), "link/inner", own()));
  EXPECT_THAT(names("elsewhere"), ElementsAre("file"));
  EXPECT_TRUE(make_directory(directory_.get(), "elsewhere/inner", own()));
}

TEST_F(PutTest, WhatAppearedOrChangedMeanwhileStays) {
  write("new", "new");
  EXPECT_TRUE(put("new", "free", 0644, {.what = Expected::What::nothing}));
  const Status taken = put("new", "free", 0644, {.what = Expected::What::nothing});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, "replaced");
  write("old", "old");
  const Expected as_it_was{.what = Expected::What::this_one, .facts = facts("old")};
  std::filesystem::remove(at("old"));
  write("other", "");  // takes the inode number, so that the next file gets another one
  write("old", "theirs");
  const Status other = put("new", "old", 0644, as_it_was);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, "replaced");
  EXPECT_EQ(read("old"), "theirs");
  EXPECT_TRUE(put("new", "old", 0644, {.what = Expected::What::this_one, .facts = facts("old")}));
}

TEST_F(PutTest, HolesStayHoles) {
  write("sparse", "");
  std::filesystem::resize_file(at("sparse"), 64 << 20);
  ASSERT_TRUE(put("sparse", "copy"));
  EXPECT_EQ(facts("copy").st_size, 64 << 20);
  EXPECT_LT(facts("copy").st_blocks, 128);
}

TEST_F(PutTest, WhatIsCopiedIsTold) {
  constexpr std::uint64_t kLarge = (3 << 20) + 5;
  write("small", "12345");
  write("large", std::string(kLarge, 'x'));
  write("empty", "");
  std::vector<std::uint64_t> told;
  const Copied copied = [&told](std::uint64_t bytes) { told.push_back(bytes); };
  for (const char* each : {"small", "empty"})
    ASSERT_TRUE(put_file(open(each).get(), directory_.get(), "copy", 0644, own(), {}, copied));
  EXPECT_THAT(told, ElementsAre(5));
  told.clear();
  ASSERT_TRUE(put_file(open("large").get(), directory_.get(), "copy", 0644, own(), {}, copied));
  EXPECT_GT(told.size(), 2U);
  EXPECT_EQ(std::accumulate(told.begin(), told.end(), std::uint64_t{0}), kLarge);
}

TEST_F(PutTest, OnlyTemporaryFilesAndLinksAreRemoved) {
  write(".sbx-0123456789abcdef", "");
  write(".sbx-0123456789abcdeg", "");
  write(".sbx-fedcba9876543210/inner", "");
  std::filesystem::create_symlink("x", at(".sbx-0000000000000000"));
  remove_temporaries(directory_.get());
  EXPECT_THAT(names(), UnorderedElementsAre(".sbx-0123456789abcdeg", ".sbx-fedcba9876543210"));
}

TEST_F(PutTest, AWriterWaitsForTheOtherAndCanGiveUp) {
  const UniqueFd other(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  int begun = 0;
  const Waiting waiting{.begins = [&] { ++begun; }, .stop = [] { return true; }};
  const Status stopped = lock_directory(directory_.get(), waiting);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, "stopped");
  EXPECT_EQ(begun, 1);
  ASSERT_EQ(::flock(other.get(), LOCK_UN), 0);
  EXPECT_TRUE(lock_directory(directory_.get(), waiting));
  EXPECT_EQ(begun, 1);
}

/// "upper" contains what a run wrote, "lower" is the host's directory, and the result goes to
/// "out".
class CollectTest : public PutTest {
 protected:
  CollectTest() {
    for (const char* each : {"upper", "lower", "out"}) std::filesystem::create_directory(at(each));
    Layer& layer = copy_.layers.emplace_back();
    layer.upper = open("upper");
    layer.lower = open("lower");
    layer.prefix = ".";
    copy_.directory = at("lower");
    copy_.is_overlay = true;
  }
  void created(const std::string& path, FileType type = FileType::file,
               ChangeKind kind = ChangeKind::created) {
    if (type == FileType::file) write("upper/" + path, "12345");
    changes_.changes.push_back(
        {.path = path, .change = kind, .type = type, .bytes = 5, .mode = 0644});
  }
  Collected collected(const Collecting& what) {
    const UniqueFd target = open("out");
    auto done = collect(copy_, changes_, target.get(), what);
    EXPECT_TRUE(done);
    return done ? std::move(*done) : Collected();
  }
  static Collecting within(std::vector<std::string> patterns, std::uint64_t bytes = 1000,
                           std::uint64_t files = 100, std::uint64_t depth = 10) {
    return {.patterns = std::move(patterns),
            .limits = {.max_bytes = bytes, .max_files = files, .max_depth = depth}};
  }

  Copy copy_;
  ChangeSet changes_;
};

TEST_F(CollectTest, PatternsChooseAndTheOthersAreNamed) {
  created("a.csv");
  created("b.txt");
  created("c.csv", FileType::file, ChangeKind::modified);
  const Collected done = collected(within({"*.csv"}));
  EXPECT_THAT(names("out"), UnorderedElementsAre("a.csv", "c.csv"));
  EXPECT_EQ(done.unmatched, 1U);
  ASSERT_EQ(done.left.size(), 1U);
  EXPECT_EQ(done.left[0].path, "b.txt");
}

TEST_F(CollectTest, WithoutPatternsWhatWasCreatedIsCopied) {
  created("a.csv");
  created("c.csv", FileType::file, ChangeKind::modified);
  (void)collected(within({}));
  EXPECT_THAT(names("out"), ElementsAre("a.csv"));
}

TEST_F(CollectTest, WhatIsBeyondALimitIsLeftWithTheReason) {
  for (const char* each : {"a", "b", "c", "d/e/f"}) created(each);
  const Collected by_bytes = collected(within({"**"}, 10));
  EXPECT_EQ(by_bytes.files.size(), 2U);
  EXPECT_THAT(by_bytes.left.front().why, HasSubstr("max_bytes"));
  const Collected by_files = collected(within({"**"}, 1000, 3));
  EXPECT_EQ(by_files.files.size(), 3U);
  EXPECT_THAT(by_files.left.front().why, HasSubstr("max_files"));
  const Collected by_depth = collected(within({"**"}, 1000, 100, 1));
  EXPECT_EQ(by_depth.left.front().path, "d/e/f");
  EXPECT_THAT(by_depth.left.front().why, HasSubstr("max_depth"));
  EXPECT_THAT(collected(within({"**"})).left, IsEmpty());
}

TEST_F(CollectTest, CopiesAndTheirEndAreTold) {
  std::vector<std::uint64_t> told;
  copy_.copied = [&told](std::uint64_t bytes) { told.push_back(bytes); };
  created("a");
  created("b");
  (void)collected(within({"**"}));
  EXPECT_THAT(told, ElementsAre(5, 5, 0));
  told.clear();
  ASSERT_TRUE(apply(copy_, {.changes = changes_.changes, .left = {}}));
  EXPECT_THAT(told, ElementsAre(5, 5, 0));
}

TEST_F(CollectTest, LinksAndFifosAreLeft) {
  std::filesystem::create_symlink("/etc/passwd", at("upper/link"));
  ASSERT_EQ(::mkfifo(at("upper/fifo").c_str(), 0600), 0);
  created("link", FileType::link);
  created("fifo", FileType::fifo);
  created("file");
  const Collected done = collected(within({"**"}));
  EXPECT_THAT(names("out"), ElementsAre("file"));
  EXPECT_EQ(done.left.size(), 2U);
}

TEST_F(CollectTest, AFileThatBecameALinkIsNotReadThroughIt) {
  std::filesystem::create_symlink("/etc/passwd", at("upper/file"));
  changes_.changes.push_back(
      {.path = "file", .change = ChangeKind::created, .type = FileType::file, .bytes = 5});
  const Collected done = collected(within({"**"}));
  EXPECT_THAT(names("out"), IsEmpty());
  ASSERT_EQ(done.left.size(), 1U);
  EXPECT_TRUE(done.left[0].failed);
}

/// The owner of the host's directories takes the temporary directory away between writing and
/// naming.
TEST_F(CollectTest, AnApplicationSaysThatItsTemporaryDirectoryWasReplaced) {
  for (const char* each : {"lower/one", "lower/two"}) std::filesystem::create_directory(at(each));
  created("one/a");
  created("two/b");
  std::string taken;
  const auto take = [&] {
    if (!names("lower/two").empty() && taken.empty()) {
      taken = names("lower/one").front();
      std::filesystem::rename(at("lower/one/" + taken), at("lower/one/moved"));
      std::filesystem::create_directory(at("lower/one/" + taken));
    }
    return false;
  };
  const auto applied = apply(copy_, {.changes = changes_.changes, .left = {}}, {.stop = take});
  ASSERT_TRUE(applied);
  ASSERT_EQ(applied->left.size(), 1U);
  EXPECT_EQ(applied->left[0].path, "one/a");
  EXPECT_EQ(applied->left[0].why, "another process replaced 'one/" + taken + "'");
  EXPECT_TRUE(applied->has_failures());
  EXPECT_FALSE(std::filesystem::exists(at("lower/one/a")));
  EXPECT_EQ(read("lower/two/b"), "12345");
}

TEST_F(CollectTest, TheTargetIsNoLink) {
  std::filesystem::create_directory_symlink("out", at("link"));
  for (const char* name : {"link", "link/", "link//"}) {
    const auto target = prepare_target(at(".").string() + "/" + name);
    ASSERT_FALSE(target) << name;
    EXPECT_THAT(target.error().message, HasSubstr("symbolic link"));
  }
  EXPECT_TRUE(prepare_target(at("out").string() + "/"));
  EXPECT_TRUE(prepare_target(at("made").string()));
}

TEST_F(CollectTest, ATargetThatWasMadeGoesAgainWhereNothingCame) {
  for (const bool is_filled : {false, true}) {
    const auto made = prepare_target(at("made").string());
    ASSERT_TRUE(made);
    if (is_filled) std::ofstream(at("made/file")) << "x";
  }
  EXPECT_TRUE(std::filesystem::exists(at("made/file")));
  {
    EXPECT_TRUE(prepare_target(at("empty").string()));
  }
  EXPECT_FALSE(std::filesystem::exists(at("empty")));
  std::filesystem::create_directory(at("theirs"));
  {
    EXPECT_TRUE(prepare_target(at("theirs").string()));
  }
  EXPECT_TRUE(std::filesystem::exists(at("theirs"))) << "it was there before";
  {
    const auto moved = prepare_target(at("moved").string());
    std::filesystem::rename(at("moved"), at("elsewhere"));
    std::filesystem::create_directory(at("moved"));
  }
  EXPECT_TRUE(std::filesystem::exists(at("moved"))) << "another directory has the name";
}

TEST_F(CollectTest, TheTargetIsNotAnotherUsersInADirectoryOfEverybody) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  std::filesystem::create_directory(at("shared"));
  std::filesystem::create_directory(at("shared/theirs"));
  ASSERT_EQ(::chown(at("shared/theirs").c_str(), 1234, 1234), 0);
  EXPECT_TRUE(prepare_target(at("shared/theirs").string()));
  ASSERT_EQ(::chmod(at("shared").c_str(), 01777), 0);
  const auto target = prepare_target(at("shared/theirs").string());
  ASSERT_FALSE(target);
  EXPECT_THAT(target.error().message, HasSubstr("another user owns it"));
  EXPECT_TRUE(prepare_target(at("shared/mine").string()));
}

}  // namespace
}  // namespace sbx::workspace
