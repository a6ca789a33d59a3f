#include "base/event_loop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/sys.hpp"

namespace sbx {
namespace {

using namespace std::chrono_literals;

struct EventLoopTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  sys::Pipe first = std::move(*sys::make_pipe());
  sys::Pipe second = std::move(*sys::make_pipe());

  static void write_to(const sys::Pipe& pipe) { ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1); }
};

TEST_F(EventLoopTest, CallsBackForAReadableDescriptor) {
  std::uint32_t seen = 0;
  ASSERT_TRUE(loop.watch(first.read.get(), EPOLLIN, [&](std::uint32_t events) { seen = events; }));
  write_to(first);
  ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(seen, std::uint32_t{EPOLLIN});
}

TEST_F(EventLoopTest, ACallbackMayForgetEveryDescriptorOfTheSameBatch) {
  int calls = 0;
  const auto forget_both = [&](std::uint32_t) {
    ++calls;
    loop.forget(first.read.get());
    loop.forget(second.read.get());
  };
  ASSERT_TRUE(loop.watch(first.read.get(), EPOLLIN, forget_both));
  ASSERT_TRUE(loop.watch(second.read.get(), EPOLLIN, forget_both));
  write_to(first);
  write_to(second);
  ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, AForgottenNumberCanBeWatchedAgainInsideTheCallback) {
  int again = 0;
  ASSERT_TRUE(loop.watch(first.read.get(), EPOLLIN, [&](std::uint32_t) {
    loop.forget(first.read.get());
    ASSERT_TRUE(loop.watch(first.read.get(), EPOLLIN, [&](std::uint32_t) { ++again; }));
  }));
  write_to(first);
  ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(again, 0);
  ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(again, 1);
}

TEST_F(EventLoopTest, AHangUpOfAPausedDescriptorIsSilentUntilItIsResumed) {
  int calls = 0;
  bool fired = false;
  ASSERT_TRUE(loop.watch(first.read.get(), EPOLLIN, [&](std::uint32_t) { ++calls; }));
  loop.set_events(first.read.get(), 0);
  first.write.reset();
  loop.after(1ms, [&] { fired = true; });
  while (!fired) ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(calls, 0);
  loop.set_events(first.read.get(), EPOLLIN);
  ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, ARegularFileIsAlwaysReady) {
  const UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  int calls = 0;
  ASSERT_TRUE(loop.watch(file.get(), EPOLLIN, [&](std::uint32_t) { ++calls; }));
  ASSERT_TRUE(loop.run_once());
  ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(calls, 2);
  loop.set_events(file.get(), 0);
  bool fired = false;
  loop.after(0ms, [&] { fired = true; });
  while (!fired) ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, TimersFireInTheOrderOfTheirDeadlines) {
  std::string order;
  const std::uint64_t now = sys::now_microseconds();  // one for all, however long this takes
  loop.at(now + 3000, [&] { order += 'c'; });
  loop.at(now + 1000, [&] { order += 'a'; });
  loop.at(now + 2000, [&] { order += 'b'; });
  while (order.size() < 3) ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(order, "abc");
}

TEST_F(EventLoopTest, ATimerNeverFiresEarly) {
  const std::uint64_t before = sys::now_microseconds();
  std::uint64_t fired = 0;
  loop.after(2500us, [&] { fired = sys::now_microseconds(); });
  while (fired == 0) ASSERT_TRUE(loop.run_once());
  EXPECT_GE(fired - before, 2500U);
}

TEST_F(EventLoopTest, ACancelledTimerDoesNotFire) {
  bool wrong = false;
  bool right = false;
  const EventLoop::TimerId id = loop.after(0us, [&] { wrong = true; });
  loop.after(1ms, [&] { right = true; });
  loop.cancel(id);
  while (!right) ASSERT_TRUE(loop.run_once());
  EXPECT_FALSE(wrong);
}

TEST_F(EventLoopTest, ATimerThatSetsItselfAgainDoesNotKeepDescriptorsWaiting) {
  bool read = false;
  std::function<void()> again = [&] { loop.after(0us, again); };
  again();
  ASSERT_TRUE(loop.watch(first.read.get(), EPOLLIN, [&](std::uint32_t) { read = true; }));
  write_to(first);
  for (int turn = 0; turn < 3 && !read; ++turn) ASSERT_TRUE(loop.run_once());
  EXPECT_TRUE(read);
}

}  // namespace
}  // namespace sbx
