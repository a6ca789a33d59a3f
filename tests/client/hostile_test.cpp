#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/process.hpp"
#include "client/cell.hpp"
#include "client/task.hpp"

namespace sbx::client {
namespace {

constexpr int kPackets = 10'000;

/// What a session could answer.
const std::vector<Json>& answers() {
  static const std::vector<Json> all{
      write_fields(protocol::CallBegun{.call = 1}),
      write_fields(protocol::CallEnded{}),
      write_fields(protocol::ReaderBegun{}),
      write_fields(protocol::ReaderEvent{}),
      write_fields(protocol::ChangesAnswer{}),
      write_fields(protocol::BroughtOutAnswer{}),
      write_fields(protocol::CellEvent{}),
      write_fields(protocol::CellEnded{.cell = Json::object()}),
      write_fields(protocol::SessionFacts{}),
      write_fields(protocol::InspectAnswer{}),
      {{"error", {{"kind", 1}, {"code", "x"}, {"message", "y"}, {"hint", ""}}}}};
  return all;
}

/// One of them, with a few bytes changed.
std::string fuzzed(std::mt19937& random) {
  std::string packet(1, '\2');
  Json::to_cbor(answers()[random() % answers().size()], packet);
  for (std::uint32_t changes = random() % 4; changes > 0; --changes) {
    const std::size_t at = random() % packet.size();
    if (random() % 3 == 0)
      packet.resize(at + 1);
    else
      packet[at] = static_cast<char>(random());
  }
  return packet;
}

/// Ends a client that gets `packets`, and then the end of its session. Returns its error's code;
/// empty: it took that for an answer.
template <class Client>
std::string ended_by(
    const std::vector<std::string>& packets,
    const std::function<Status(Client&, EventLoop&, std::optional<std::string>&)>& attach,
    const std::function<std::unique_ptr<Client>(session::Client)>& make) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  UniqueFd session(ends[1]);
  auto loop = EventLoop::make();
  const auto client = make(session::Client(UniqueFd(ends[0])));
  std::optional<std::string> code;
  EXPECT_TRUE(attach(*client, *loop, code));
  std::array<std::byte, 4096> request{};  // unread, it would be all that the client hears of
  EXPECT_GT(sys::receive_message(session.get(), request).length, 0U);
  for (const std::string& each : packets)
    (void)sys::send_message(session.get(), std::as_bytes(std::span(each)), {});
  session.reset();
  while (!code) EXPECT_TRUE(loop->run_once());
  return *code;
}

template <class Asked>
std::string task_ended_by(const std::vector<std::string>& packets) {
  return ended_by<Task<Asked>>(
      packets,
      [](Task<Asked>& task, EventLoop& loop, std::optional<std::string>& code) {
        return task.attach(loop, {.ended = [&code](auto answer) {
                             code = answer ? "" : answer.error().code;
                             EXPECT_TRUE(answer || !code->empty());
                           }});
      },
      [](session::Client connection) {
        return std::make_unique<Task<Asked>>(std::move(connection), Asked{});
      });
}

std::string cell_ended_by(const std::vector<std::string>& packets) {
  return ended_by<Cell>(
      packets,
      [](Cell& cell, EventLoop& loop, std::optional<std::string>& code) {
        return cell.attach(loop, {.out = [](std::string_view) {},
                                  .err = [](std::string_view) {},
                                  .event = [](const protocol::CellEvent&) {},
                                  .ended =
                                      [&code](Cell::Ended ended) {
                                        code = ended ? "" : ended.error().code;
                                        EXPECT_TRUE(ended || !code->empty());
                                      }});
      },
      [](session::Client connection) {
        return std::make_unique<Cell>(std::move(connection), protocol::EvalRequest{});
      });
}

TEST(HostileSessions, EndEachClientWithACode) {
  std::mt19937 random(1);
  int answered = 0;
  for (int i = 0; i < kPackets / 2; ++i) {
    const std::vector packets{fuzzed(random), fuzzed(random)};
    answered += task_ended_by<protocol::CallRequest>(packets).empty() ? 1 : 0;
    answered += task_ended_by<protocol::ChangesRequest>(packets).empty() ? 1 : 0;
    answered += task_ended_by<protocol::KeepRequest>(packets).empty() ? 1 : 0;
    answered += task_ended_by<protocol::InfoRequest>(packets).empty() ? 1 : 0;
    answered += cell_ended_by(packets).empty() ? 1 : 0;
  }
  EXPECT_GT(answered, 0);  // its twin: what is right is an answer
}

/// The packet names this process, and a child of it has sent it: the signal ends the child.
TEST(HostileSessions, NameNobodyWhoGetsSignals) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  UniqueFd session(ends[1]);
  auto loop = EventLoop::make();
  Task<protocol::ChangesRequest> task(session::Client(UniqueFd(ends[0])), {});
  ASSERT_TRUE(task.attach(*loop, {.begun = [&](const auto& /*begun*/) { task.cancel(); },
                                  .ended = [](auto /*answer*/) {}}));
  Json begun = write_fields(protocol::ReaderBegun{});
  begun["pid"] = ::getpid();
  auto reader = process::fork([&]() -> int {
    (void)protocol::send(session.get(), begun);
    for (;;) ::pause();
  });
  ASSERT_TRUE(reader);
  ASSERT_TRUE(loop->run_once());
  EXPECT_TRUE(task.has_begun());
  const int status = process::wait_for(reader->pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

/// The process at the other end is this one, which lives.
TEST(HostileSessions, ThatSayNothingHaveLostTheWork) {
  EXPECT_EQ(task_ended_by<protocol::CallRequest>({}), "call-lost");
  EXPECT_EQ(cell_ended_by({}), "call-lost");
}

TEST(HostileSessions, OfAnotherVersionAreNotUnderstood) {
  const std::vector<std::string> later{"\3\xA0"};
  EXPECT_EQ(task_ended_by<protocol::CallRequest>(later), "bad-message");
  EXPECT_EQ(cell_ended_by(later), "bad-message");
}

}  // namespace
}  // namespace sbx::client
