#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "session/worker_pool.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

/// The other ends of a worker that is no process.
struct FakeWorker {
  std::uint64_t started_for = 0;
  UniqueFd process;  ///< writing to it ends the worker
  UniqueFd link;
  UniqueFd ask;

  void die() const { ASSERT_EQ(::write(process.get(), "x", 1), 1); }
  /// Its session has closed the link.
  [[nodiscard]] bool is_dismissed() const {
    char byte = 0;
    return ::recv(link.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_PEEK) == 0;
  }
  /// The call that it has been given; 0: none.
  [[nodiscard]] std::uint64_t call(std::size_t* fds = nullptr, std::int32_t* with = nullptr) const {
    Note note{};
    if (::recv(link.get(), &note, sizeof note, MSG_DONTWAIT) != sizeof note) return 0;
    EXPECT_EQ(note.what, Note::What::call);
    auto packet = protocol::receive(link.get());
    EXPECT_TRUE(packet.has_value());
    if (fds != nullptr) *fds = packet->fds.size();
    if (with != nullptr) *with = note.value;
    return read_fields<Assignment>(std::move(packet->body))->call;
  }
};

struct WorkersTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  std::list<FakeWorker> fakes;
  std::list<Worker> calls;
  int sweeps = 0;
  bool can_start = true;
  WorkerPool pool{
      loop,
      {.start = [this](std::uint64_t call) { return start(call); }, .sweep = [this] { ++sweeps; }}};

  Result<Worker> start(std::uint64_t call) {
    if (!can_start) return fail(Error{.kind = ErrorKind::host, .code = "cannot-clone"});
    auto process = sys::make_stream_pair();
    auto link = sys::make_packet_pair();
    auto ask = sys::make_packet_pair();
    fakes.push_back({.started_for = call,
                     .process = std::move(process->second),
                     .link = std::move(link->second),
                     .ask = std::move(ask->second)});
    return Worker{.process = std::move(process->first),
                  .link = std::move(link->first),
                  .ask = std::move(ask->first)};
  }
  [[nodiscard]] Result<Worker> give(std::uint64_t call) {
    const std::vector<UniqueFd> none;
    return pool.give({.call = call}, {.streams = none, .client = -1, .image = -1});
  }
  /// Begins `count` calls, which run at once.
  [[nodiscard]] std::vector<Worker> begin(std::uint64_t count) {
    std::vector<Worker> workers;
    for (std::uint64_t call = 1; call <= count; ++call) {
      auto worker = give(call);
      EXPECT_TRUE(worker.has_value());
      workers.push_back(std::move(*worker));
      EXPECT_EQ(fakes.back().call(), call);
    }
    return workers;
  }
};

TEST_F(WorkersTest, OneThatWaitsGetsTheNextCall) {
  auto workers = begin(1);
  pool.keep(std::move(workers[0]));
  auto second = give(2);
  ASSERT_TRUE(second);
  EXPECT_EQ(fakes.size(), 1U);
  EXPECT_EQ(fakes.front().call(), 2U);
}

TEST_F(WorkersTest, ACallComesWithItsDescriptors) {
  TestClient client;
  std::vector<UniqueFd> streams;
  for (int i = 0; i < 3; ++i) streams.emplace_back(::dup(0));
  const UniqueFd image(::dup(0));
  ASSERT_TRUE(pool.give(
      {.call = 1}, {.streams = streams, .client = client.socket().get(), .image = image.get()}));
  std::size_t count = 0;
  std::int32_t with = 0;
  EXPECT_EQ(fakes.front().call(&count, &with), 1U);
  EXPECT_EQ(count, 5U);
  EXPECT_EQ(with, CallDescriptors::kClient | CallDescriptors::kImage);
}

TEST_F(WorkersTest, NoMoreWaitThanCallsAreOftenUnderWay) {
  auto workers = begin(plan::kInitsAhead + 1);
  for (Worker& each : workers) pool.keep(std::move(each));
  EXPECT_TRUE(fakes.back().is_dismissed());
  EXPECT_FALSE(fakes.front().is_dismissed());
}

/// Nobody has told the session yet.
TEST_F(WorkersTest, ACallPassesOverOneThatWasKilledJustNow) {
  auto workers = begin(2);
  for (Worker& each : workers) pool.keep(std::move(each));
  fakes.back().link.reset();
  auto next = give(3);
  ASSERT_TRUE(next);
  EXPECT_EQ(fakes.front().call(), 3U);
  fakes.front().link.reset();
  pool.keep(std::move(*next));
  ASSERT_TRUE(give(4));
  EXPECT_EQ(fakes.size(), 3U);
  EXPECT_EQ(fakes.back().call(), 4U);
}

TEST_F(WorkersTest, OneThatIsKilledWhileItWaitsIsReapedAndItsGroupSwept) {
  auto workers = begin(1);
  pool.keep(std::move(workers[0]));
  fakes.front().die();
  while (sweeps < 3) ASSERT_TRUE(loop.run_once());
  can_start = false;
  EXPECT_EQ(give(2).error().code, "cannot-clone");  // it is not among those that wait
}

TEST_F(WorkersTest, ADismissedOneIsReapedWhenItEnds) {
  auto workers = begin(1);
  pool.dismiss(std::move(workers[0]));
  EXPECT_TRUE(fakes.front().is_dismissed());
  fakes.front().die();
  while (sweeps < 3) ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(::send(fakes.front().process.get(), "x", 1, MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(WorkersTest, AtTheEndAllAreGone) {
  auto workers = begin(3);
  pool.keep(std::move(workers[0]));
  pool.dismiss(std::move(workers[1]));
  for (const FakeWorker& each : fakes) each.die();
  std::vector<Worker> running;
  running.push_back(std::move(workers[2]));
  pool.end(std::move(running));
  for (const FakeWorker& each : fakes) EXPECT_TRUE(each.is_dismissed());
  EXPECT_EQ(sweeps, 1);
}

TEST_F(WorkersTest, NoneWaitsWhenTheSessionEnds) {
  auto workers = begin(1);
  pool.keep_no_more();
  pool.keep(std::move(workers[0]));
  EXPECT_TRUE(fakes.front().is_dismissed());
}

}  // namespace
}  // namespace sbx::session
