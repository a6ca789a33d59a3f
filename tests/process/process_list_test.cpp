#include "supervise/meters/process_list.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "base/sys.hpp"
#include "fake_sandbox.hpp"

namespace sbx::test {
namespace {

using supervise::ProcessList;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<pid_t> numbers(ProcessList& list) {
  std::vector<pid_t> found;
  for (const ProcessList::Process& process : list.all()) found.push_back(process.number);
  return found;
}

ProcessList::Process& process(ProcessList& list, pid_t number) {
  for (ProcessList::Process& each : list.all())
    if (each.number == number) return each;
  ADD_FAILURE() << number << " is not listed";
  return list.all().front();
}

/// A child that waits to be killed; optionally created by a thread other than the first.
class Child {
 public:
  explicit Child(bool by_thread = false) {
    const auto make = [this] {
      pid_ = ::fork();
      if (pid_ == 0)
        for (;;) ::pause();
    };
    if (by_thread)
      std::thread(make).join();
    else
      make();
  }
  Child(const Child&) = delete;
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(ProcessList, IsTheTreeBelowAProcessWithoutItself) {
  TestPipe told;
  Child child;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0)
      for (;;) ::pause();
    (void)!::write(told.write.get(), &grandchild, sizeof grandchild);
    for (;;) ::pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(told.read.get(), &grandchild, sizeof grandchild), sizeof grandchild);
  ProcessList list(::getpid(), -1);
  list.refresh();
  EXPECT_THAT(numbers(list), UnorderedElementsAre(child.pid(), parent, grandchild));
  EXPECT_EQ(list.tasks(), 3U);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  list.refresh();
  EXPECT_THAT(numbers(list), UnorderedElementsAre(child.pid(), grandchild));
  ::kill(grandchild, SIGKILL);
  ::waitpid(grandchild, nullptr, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(ProcessList, FindsWhatAThreadMadeAndWhatCameSinceTheLastLook) {
  ProcessList list(::getpid(), -1);
  list.add_new();
  EXPECT_THAT(numbers(list), IsEmpty());
  for (const bool by_thread : {false, true}) {
    TestPipe hold;
    TestPipe told;
    const pid_t program = ::fork();
    if (program == 0) {
      std::thread([&] {
        const Child child(by_thread);
        const pid_t pid = child.pid();
        (void)!::write(told.write.get(), &pid, sizeof pid);
        char byte = 0;
        (void)!::read(hold.read.get(), &byte, 1);  // its children are its own until it ends
      }).join();
      ::_exit(0);
    }
    pid_t pid = 0;
    EXPECT_EQ(::read(told.read.get(), &pid, sizeof pid), sizeof pid);
    list.add_new();
    EXPECT_THAT(numbers(list), Contains(pid));
    EXPECT_THAT(std::string(list.statm(process(list, pid))), Not(IsEmpty()));
    EXPECT_EQ(::write(hold.write.get(), "x", 1), 1);
    ::waitpid(program, nullptr, 0);
  }
  list.refresh();
  EXPECT_THAT(numbers(list), IsEmpty());
}

/// Exits its first thread; reports through `told`.
[[noreturn]] void go_on_in_another_thread(TestPipe& told) {
  static int to = told.write.get();
  std::thread([] {
    // pthread_join(3) would wait for the address sanitizer's own end of the thread, which a bare
    // exit skips.
    while (sys::read_file("/proc/self/stat", 4096).value_or("").find(") Z ") == std::string::npos)
      ::sched_yield();
    (void)!::write(to, "x", 1);
    for (;;) ::pause();
  }).detach();
  for (;;) ::syscall(SYS_exit, 0);  // pthread_exit would unwind through the test
}

TEST(ProcessList, MemoryIsToldOfAsLongAsAnyThreadIsLeft) {
  TestPipe told;
  const pid_t pid = ::fork();
  if (pid == 0) go_on_in_another_thread(told);
  char byte = 0;
  ASSERT_EQ(::read(told.read.get(), &byte, 1), 1);
  ProcessList list(::getpid(), -1);
  list.refresh();
  ProcessList::Process& left = process(list, pid);
  EXPECT_THAT(std::string(list.statm(left)), Not(testing::StartsWith("0 ")));
  EXPECT_THAT(std::string(list.statm(left)), Not(IsEmpty()));
  EXPECT_NE(left.holder, pid) << "its first thread has no memory any more";
  EXPECT_THAT(ProcessList::memory_directory(left), testing::HasSubstr("/task/"));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(ProcessList, AnEndedProcessHasNoMemory) {
  ProcessList list(::getpid(), -1);
  Child child;
  list.refresh();
  EXPECT_THAT(std::string(list.statm(process(list, child.pid()))), Not(IsEmpty()));
  const pid_t gone = child.pid();
  child.end();
  EXPECT_THAT(std::string(list.statm(process(list, gone))), IsEmpty());
}

TEST(ProcessList, AProcfsListsWhatComesAfterItsPid1) {
  const UniqueFd procfs(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ProcessList list(1, procfs.get());
  list.refresh();
  EXPECT_THAT(numbers(list), Not(Contains(1)));
  const Child child;
  list.refresh();  // from the offset that the first look found
  EXPECT_THAT(numbers(list), Contains(child.pid()));
  EXPECT_THAT(numbers(list), Contains(::getpid()));
  EXPECT_THAT(std::string(list.statm(process(list, child.pid()))), Not(IsEmpty()));
}

}  // namespace
}  // namespace sbx::test
