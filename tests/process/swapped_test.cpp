#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/held.hpp"
#include "base/random.hpp"
#include "base/sys.hpp"
#include "plan/tier/private_names.hpp"
#include "transfer/archive.hpp"
#include "transfer/host.hpp"
#include "workspace/changes.hpp"
#include "workspace/disk.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"

/// What sbx does on the host while somebody swaps names as fast as he can: nothing outside is
/// touched. Each test has a twin without that process, in which the same is done as a whole.
namespace sbx {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// More in the slow form.
int rounds() {
  const char* const said = std::getenv("SBX_TEST_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  return said == nullptr ? 200 : std::atoi(said);
}

/// Repeats one step as fast as it can.
class Attacker {
 public:
  explicit Attacker(std::function<void()> step)
      : thread_([this, step = std::move(step)] {
          while (!ends_) step();
        }) {}
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;
  ~Attacker() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

std::vector<std::unique_ptr<Attacker>> four(const std::function<void()>& step) {
  std::vector<std::unique_ptr<Attacker>> attackers;
  for (int i = 0; i < 4; ++i) attackers.push_back(std::make_unique<Attacker>(step));
  return attackers;
}

class SwappedTest : public testing::Test {
 protected:
  SwappedTest() {
    // In memory where there is such a place: on a disk each new directory may take milliseconds.
    std::string name =
        (::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : testing::TempDir()) + "/sbx-swapped-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = fs::canonical(name);
    directory_ = UniqueFd(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~SwappedTest() override {
    std::error_code ignored;
    for (const auto& each : fs::recursive_directory_iterator(root_, ignored))
      if (each.is_directory() && !each.is_symlink())
        fs::permissions(each.path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    fs::remove_all(root_, ignored);
  }

  [[nodiscard]] fs::path at(const std::string& name) const { return root_ / name; }
  [[nodiscard]] int directory() const { return directory_.get(); }
  void write(const std::string& name, mode_t mode = 0644) const {
    fs::create_directories(at(name).parent_path());
    std::ofstream(at(name)) << "text";
    ASSERT_EQ(::chmod(at(name).c_str(), mode), 0);
  }
  [[nodiscard]] mode_t mode_of(const std::string& name) const {
    struct stat facts{};
    EXPECT_EQ(::lstat(at(name).c_str(), &facts), 0) << name;
    return facts.st_mode & 07777;
  }
  [[nodiscard]] UniqueFd open(const std::string& name) const {
    return UniqueFd(::open(at(name).c_str(), O_RDONLY | O_CLOEXEC));
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& below) const {
    std::vector<std::string> list;
    for (const auto& each : fs::directory_iterator(at(below)))
      list.push_back(each.path().filename());
    return list;
  }
  /// Of `made` and `victim`, removes the one that is not `kept`, and gives that one its name back.
  static void remove_other(int directory, int kept) {
    for (bool removed = false; !removed && ::faccessat(directory, "made", F_OK, 0) == 0;)
      for (const char* name : {"made", "victim"}) {
        const auto there = held::open_beneath(directory, name, O_RDONLY | O_DIRECTORY);
        if (!there || held::identity_of(there->get()) == held::identity_of(kept)) continue;
        for (const char* file : {"one", "two"}) (void)held::remove_file(there->get(), file);
        removed = removed || held::remove_directory(directory, name);
      }
    (void)held::rename_to_free({directory, "made"}, {directory, "victim"});
  }

  fs::path root_;
  UniqueFd directory_;
};

// The removal of a sandbox's disk. The program moves the directory that is emptied to the caller's
// home: the names that remain to be removed are those of directories there too.

void make_disk(const fs::path& disk) {
  std::error_code ignored;  // what the program moves away just now is there the next time
  for (const char* each : {"moved/a/b", "Documents/a", "Pictures/a", "moved2/a/b"})
    fs::create_directories(disk / each, ignored);
}

TEST_F(SwappedTest, ARemovalStaysInItsTreeWhenDirectoriesAreSwappedOut) {
  write("home/Documents/kept");
  write("home/Pictures/kept");
  const UniqueFd home = open("home");
  {
    const Attacker attacker([this, &home] {
      const UniqueFd disk(::openat(directory(), "disk", O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!disk.valid()) return;
      for (const char* each : {"moved", "moved2"}) {
        (void)held::rename({disk.get(), each}, {home.get(), each});
        (void)held::rename({home.get(), each}, {disk.get(), each});
      }
    });
    for (int round = 0; round < rounds(); ++round) {
      make_disk(at("disk"));
      workspace::remove_tree(directory(), "disk");
      ASSERT_TRUE(fs::exists(at("home/Documents/kept"))) << "round " << round;
      ASSERT_TRUE(fs::exists(at("home/Pictures/kept"))) << "round " << round;
    }
  }
}

TEST_F(SwappedTest, ARemovalTakesTheWholeTreeWhenNobodyMovesAnything) {
  for (int round = 0; round < rounds(); ++round) {
    make_disk(at("disk"));
    workspace::remove_tree(directory(), "disk");
    ASSERT_THAT(names("."), IsEmpty());
  }
}

TEST_F(SwappedTest, ARemovalFollowsNoLinkThatIsSwappedForADirectory) {
  write("victim/kept", 0600);
  ASSERT_EQ(::chmod(at("victim").c_str(), 0500), 0);
  {
    const Attacker attacker([this] {
      const UniqueFd disk(::openat(directory(), "disk", O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (disk.valid()) (void)held::exchange({disk.get(), "closed"}, {disk.get(), "link"});
    });
    for (int round = 0; round < rounds(); ++round) {
      fs::create_directories(at("new/closed/inner"));
      fs::create_directory_symlink(at("victim"), at("new/link"));
      ASSERT_EQ(::chmod(at("new/closed").c_str(), 0), 0);
      ASSERT_TRUE(held::rename_to_free({directory(), "new"}, {directory(), "disk"}));
      // What was a link when it was listed and is a directory now stays for the next removal.
      while (::faccessat(directory(), "disk", F_OK, 0) == 0)
        workspace::remove_tree(directory(), "disk");
      ASSERT_EQ(mode_of("victim"), 0500U) << "round " << round;
    }
  }
  EXPECT_THAT(names("victim"), UnorderedElementsAre("kept"));
}

TEST_F(SwappedTest, ADeepTreeIsRemovedWithFewDescriptors) {
  constexpr int kDepth = 3000;
  fs::create_directory(at("disk"));
  UniqueFd here = open("disk");
  for (int depth = 0; depth < kDepth; ++depth) {
    ASSERT_TRUE(held::make_directory(here.get(), "closed", 0700));
    UniqueFd next(::openat(here.get(), "closed", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(next.valid());
    UniqueFd file(::openat(here.get(), "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0));
    ASSERT_TRUE(file.valid());
    if (depth % 3 == 0) ASSERT_EQ(::fchmod(here.get(), 0), 0);
    here = std::move(next);
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  workspace::remove_tree(directory(), "disk");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(names("."), IsEmpty());
}

/// Stands for a supervisor that is killed: makes a disk and PID 1 of a namespace, and ends. PID 1
/// keeps no descriptor but one.
[[noreturn]] void leave_a_disk(const fs::path& state, int told, int ready) {
  const auto disk = workspace::DiskDirectory::make(state, ::geteuid(), ::getegid());
  const int spaces = CLONE_NEWPID | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
  const pid_t init = disk && ::unshare(spaces) == 0 ? ::fork() : -1;
  if (init == 0) {
    const bool lives =
        ::dup2(ready, 3) == 3 && ::close_range(4, ~0U, 0) == 0 && ::write(3, "x", 1) == 1;
    if (lives) ::pause();
    ::_exit(1);
  }
  if (init > 0) disk->note_init(init);
  ::_exit(init > 0 && ::write(told, &init, sizeof init) == sizeof init ? 0 : 1);
}

TEST_F(SwappedTest, ADiskStaysWhileAProcessOfItsSandboxLives) {
  auto told = sys::make_pipe();
  auto ready = sys::make_pipe();
  ASSERT_TRUE(told && ready);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) leave_a_disk(at("state"), told->write.get(), ready->write.get());
  ready->write.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(supervisor, &status, 0), supervisor);
  ASSERT_EQ(status, 0);
  pid_t init = 0;
  ASSERT_EQ(::read(told->read.get(), &init, sizeof init), static_cast<ssize_t>(sizeof init));
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, init, 0)));
  char byte = 0;
  EXPECT_EQ(::read(ready->read.get(), &byte, 1), 1);
  workspace::sweep_disk_directories(at("state"));
  EXPECT_EQ(names("state/disks").size(), 2U) << "the disk and its lock";
  ::kill(init, SIGKILL);
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, -1), 1);
  workspace::sweep_disk_directories(at("state"));
  EXPECT_THAT(names("state/disks"), IsEmpty());
}

TEST_F(SwappedTest, ADiskIsMadeWhileOtherRunsSweep) {
  const std::string state = at("state");
  ASSERT_TRUE(workspace::DiskDirectory::make(state, ::geteuid(), ::getegid()));
  const auto sweeps = four([&state] { workspace::sweep_disk_directories(state); });
  for (int i = 0; i < 10 * rounds(); ++i) {
    const auto disk = workspace::DiskDirectory::make(state, ::geteuid(), ::getegid());
    ASSERT_TRUE(disk) << disk.error().text();
    ASSERT_TRUE(fs::exists(disk->path()));
  }
}

TEST_F(SwappedTest, APrivateDirectoryIsMadeWhileOtherRunsSweep) {
  const auto sweeps =
      four([] { workspace::sweep_private_directories([](uid_t) { return true; }); });
  for (int i = 0; i < 2 * rounds(); ++i) {
    const std::string path =
        std::string(plan::kPrivatePlaces) + "/" + plan::kPrivateName + random_hex();
    const auto made = workspace::DiskDirectory::make_private(path, ::geteuid(), ::getegid());
    ASSERT_TRUE(made) << made.error().text();
    ASSERT_TRUE(fs::exists(path));
  }
}

// Reading what a program wrote. It closes a directory and puts a link to a file of the caller in
// its place.

TEST_F(SwappedTest, ReadingOpensNothingButWhatTheProgramWrote) {
  write("victim/key", 0400);
  ASSERT_EQ(::chmod(at("victim").c_str(), 0500), 0);
  fs::create_directories(at("upper/closed/inner"));
  ASSERT_EQ(::chmod(at("upper/closed").c_str(), 0), 0);
  fs::create_directory_symlink(at("victim"), at("upper/link"));
  write("upper/file", 0);
  fs::create_symlink(at("victim/key"), at("upper/file-link"));
  const UniqueFd upper = open("upper");
  {
    const Attacker attacker([&upper] {
      (void)held::exchange({upper.get(), "closed"}, {upper.get(), "link"});
      (void)held::exchange({upper.get(), "file"}, {upper.get(), "file-link"});
    });
    for (int round = 0; round < rounds(); ++round) {
      (void)workspace::open_private_directory(upper.get(), "closed");
      (void)workspace::open_private_directory(upper.get(), "closed/inner");
      (void)workspace::open_private_file(upper.get(), "file");
      ASSERT_EQ(mode_of("victim"), 0500U) << "round " << round;
      ASSERT_EQ(mode_of("victim/key"), 0400U) << "round " << round;
    }
  }
  if (fs::is_symlink(at("upper/closed")))
    (void)held::exchange({upper.get(), "closed"}, {upper.get(), "link"});
}

TEST_F(SwappedTest, ReadingReachesWhatIsClosedAndPutsTheModesBack) {
  write("upper/closed/inner/file", 0);
  fs::create_symlink("somewhere", at("upper/closed/inner/link"));
  write("upper/listed/file", 0644);
  ASSERT_EQ(::chmod(at("upper/closed/inner").c_str(), 0077), 0);
  ASSERT_EQ(::chmod(at("upper/closed").c_str(), 0), 0);
  ASSERT_EQ(::chmod(at("upper/listed").c_str(), 0400), 0);
  const UniqueFd upper = open("upper");
  ASSERT_EQ(::chmod(at("upper").c_str(), 0), 0);
  for (int round = 0; round < 3; ++round) {
    const auto inner = workspace::open_private_directory(upper.get(), "closed/inner");
    ASSERT_TRUE(inner) << inner.error().text();
    const auto entries = workspace::read_directory(inner->get());
    ASSERT_TRUE(entries);
    EXPECT_EQ(entries->size(), 2U);
    const auto file = workspace::open_private_file(upper.get(), "closed/inner/file");
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_TRUE(workspace::has_content(file->get(), "text"));
    const auto link = workspace::read_private_link(upper.get(), "closed/inner/link");
    ASSERT_TRUE(link) << link.error().text();
    EXPECT_EQ(*link, "somewhere");
    const auto listed = workspace::open_private_directory(upper.get(), "listed");
    ASSERT_TRUE(listed);
    const auto in_listed = workspace::read_directory(listed->get());
    ASSERT_TRUE(in_listed);
    EXPECT_EQ(in_listed->size(), 1U);
  }
  EXPECT_EQ(mode_of("upper"), 0U);
  ASSERT_EQ(::chmod(at("upper").c_str(), 0700), 0);
  EXPECT_EQ(mode_of("upper/listed"), 0400U);
  EXPECT_EQ(mode_of("upper/closed"), 0U);
  ASSERT_EQ(::chmod(at("upper/closed").c_str(), 0700), 0);
  EXPECT_EQ(mode_of("upper/closed/inner"), 0077U);
  ASSERT_EQ(::chmod(at("upper/closed/inner").c_str(), 0700), 0);
  EXPECT_EQ(mode_of("upper/closed/inner/file"), 0U);
}

TEST_F(SwappedTest, AModeThatTheProgramSetsMeanwhileStays) {
  write("file", 0600);
  const UniqueFd file = open("file");
  {
    const workspace::Lent lent(file.get(), S_IXUSR);
    EXPECT_EQ(mode_of("file"), 0700U);
    ASSERT_EQ(::chmod(at("file").c_str(), 0640), 0);
  }
  EXPECT_EQ(mode_of("file"), 0640U);
  {
    const workspace::Lent lent(file.get(), S_IXUSR);
  }
  EXPECT_EQ(mode_of("file"), 0640U);
}

// Bringing out into a directory of another user, who exchanges what was made there for a directory
// of the caller.

UniqueFd archive_of_a_directory() {
  auto pipe = sys::make_pipe();
  transfer::Writer writer(pipe->write.get());
  const auto put = [&writer](const transfer::Frame& frame) { ASSERT_TRUE(writer.put(frame)); };
  put({.kind = transfer::FrameKind::directory, .mode = 0777, .name = "made"});
  for (const char* name : {"made/one", "made/two"}) {
    put({.kind = transfer::FrameKind::file, .mode = 0666, .size = 1, .name = name});
    put({.kind = transfer::FrameKind::data, .size = 1});
    EXPECT_TRUE(writer.bytes({"x", 1}));
    put({.kind = transfer::FrameKind::complete});
  }
  put({.kind = transfer::FrameKind::end, .number = 2, .size = 2});
  EXPECT_TRUE(writer.flush());
  return std::move(pipe->read);
}

transfer::Receiving everything() {
  return {.paths = {"made"},
          .limits = {.max_bytes = 1000, .max_files = 10, .max_depth = 10},
          .place = "/out",
          .policy_files = {},
          .waiting = {}};
}

TEST_F(SwappedTest, WhatIsReceivedLeavesSwappedDirectoriesAlone) {
  fs::create_directory(at("out"));
  write("out/victim/kept", 0600);
  ASSERT_EQ(::chmod(at("out/victim").c_str(), 0700), 0);
  const UniqueFd out = open("out");
  const UniqueFd victim = open("out/victim");
  {
    const Attacker attacker(
        [&out] { (void)held::exchange({out.get(), "made"}, {out.get(), "victim"}); });
    for (int round = 0; round < rounds(); ++round) {
      const UniqueFd archive = archive_of_a_directory();
      const auto done = transfer::receive_files(archive.get(), out.get(), everything());
      ASSERT_TRUE(done);
      struct stat facts{};
      ASSERT_EQ(::fstat(victim.get(), &facts), 0);
      ASSERT_EQ(facts.st_mode & 07777, 0700U) << "round " << round;
      const auto inside = workspace::read_names(victim.get());
      ASSERT_TRUE(inside);
      ASSERT_THAT(*inside, UnorderedElementsAre("kept")) << "round " << round;
      remove_other(out.get(), victim.get());
    }
  }
}

TEST_F(SwappedTest, WhatIsReceivedIsThereWhenNobodySwaps) {
  for (int round = 0; round < rounds(); ++round) {
    fs::create_directory(at("out"));
    const UniqueFd out = open("out");
    const UniqueFd archive = archive_of_a_directory();
    const auto done = transfer::receive_files(archive.get(), out.get(), everything());
    ASSERT_TRUE(done);
    ASSERT_THAT(done->left, IsEmpty());
    ASSERT_THAT(names("out/made"), UnorderedElementsAre("one", "two"));
    fs::remove_all(at("out"));
  }
}

TEST_F(SwappedTest, ADirectoryThatWasSwappedIsNotGivenAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives directories to others";
  constexpr workspace::Owner kNobody{.uid = 65534, .gid = 65534};
  write("out/victim/kept");
  const UniqueFd out = open("out");
  const UniqueFd victim = open("out/victim");
  {
    const Attacker attacker(
        [&out] { (void)held::exchange({out.get(), "made"}, {out.get(), "victim"}); });
    for (int round = 0; round < rounds(); ++round) {
      (void)workspace::make_directory(out.get(), "made", kNobody);
      struct stat facts{};
      ASSERT_EQ(::fstat(victim.get(), &facts), 0);
      ASSERT_EQ(facts.st_uid, 0U) << "round " << round;
      remove_other(out.get(), victim.get());
    }
  }
  ASSERT_TRUE(workspace::make_directory(out.get(), "made", kNobody));
  struct stat facts{};
  ASSERT_EQ(::lstat(at("out/made").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, kNobody.uid);
}

// What a killed put left in a directory of a session.

TEST_F(SwappedTest, OnlyTemporaryFilesOfTheDeadAreRemoved) {
  write(".sbx-0123456789abcdef");
  auto lives = workspace::NewFile::make(directory(), "new");
  ASSERT_TRUE(lives);
  workspace::remove_dead_temporaries(directory());
  EXPECT_EQ(names(".").size(), 1U);
  ASSERT_TRUE(lives->finish(0644, {}));
  EXPECT_THAT(names("."), UnorderedElementsAre("new"));
}

TEST_F(SwappedTest, ALockOfAnyoneElseIsWaitedForAWhileAndNamed) {
  fs::create_directory(at("out"));
  const UniqueFd out = open("out");
  auto ready = sys::make_pipe();
  ASSERT_TRUE(ready);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const UniqueFd own(::open(at("out").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool locked = ::flock(own.get(), LOCK_EX) == 0 &&
                        sys::write_file("/proc/self/comm", "greedy").has_value() &&
                        ::write(ready->write.get(), "x", 1) == 1;
    if (locked) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready->read.get(), &byte, 1), 1);
  const Status locked = workspace::lock_directory(
      out.get(), {.begins = {}, .stop = {}, .patience = std::chrono::milliseconds(50)});
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().code, "cannot-lock");
  EXPECT_THAT(locked.error().message, testing::HasSubstr(std::to_string(holder) + " (greedy)"));
  EXPECT_TRUE(workspace::lock_directory(out.get(), {}));
}

}  // namespace
}  // namespace sbx
