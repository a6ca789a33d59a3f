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

/// One of everything that a record of a cell lists.
protocol::CellEnded ended_cell() {
  protocol::CellResult result{.main = true, .file = ByName<std::string>{{"image/png", "x.png"}}};
  result.data.emplace_back("text/plain", "1");
  result.data.emplace_back("application/json", Json{{"any", 1}});
  result.left_out = std::vector<protocol::LeftOutForm>{{.mime = "text/html", .bytes = 5}};
  result.display_id = "d";
  result.update.emplace(true);
  protocol::CellError error{.name = "E", .value = "v", .traceback = "t", .line = 3};
  error.kind.emplace(Obstacle::not_found);
  protocol::CellRecord cell{
      .session = {.name = "s", .context = "python", .language = "python", .call = 1},
      .policy = protocol::PolicyFacts{.name = "p"},
      .outcome = {.reason = "memory", .exit_code = 1, .signal = 9},
      .stdout_ = {.text = "out"},
      .answer = protocol::InterpreterAnswer{.results = {result}, .error = error, .exit = 1},
      .denials = {{.what = "socket", .count = 1, .options = {"--allow-host"}, .during_call = true}},
      .network = {.failed = {{.what = "w", .why = "y", .count = 1}}},
      .degraded = {{.promise = Promise::memory, .why = "y", .instead = "i"}}};
  cell.limits_met.push_back({{.limit = "disk", .value = 1, .peak = 2}, "rule"});
  cell.outcome.kind.emplace(Obstacle::exists);
  cell.outcome.side.emplace(Side::host);
  cell.outcome.hint = "h";
  cell.outcome.rule = "r";
  cell.hints = std::vector<Hint>{{.what = "w", .text = "t", .options = {"--read"}}};
  cell.write_error = protocol::WriteErrorFacts{.stream = "stdout", .error = "e", .errno_ = 5};
  cell.lost_because = "l";
  protocol::CellEnded ended{.cell = cell};
  ended.notes = std::vector<std::string>{"n"};
  ended.failure = protocol::ErrorFields{.code = "c"};
  return ended;
}

protocol::CellEvent cell_event() {
  protocol::CellEvent event;
  event.result = ended_cell().cell.answer->results.front();
  event.clear = protocol::CellClear{};
  event.place = protocol::CellPlace{.display_id = "d"};
  event.failure = *ended_cell().cell.answer->error;
  return event;
}

std::vector<Change> changes() {
  return {{.path = "a", .bytes = 1, .mode = 0644}};
}

protocol::ChangesAnswer seen_changes() {
  protocol::ChangesAnswer seen{.changes = changes()};
  seen.text = "t";
  seen.left = std::vector<protocol::LeftFacts>{{.path = "p", .why = "w"}};
  return seen;
}

protocol::BroughtOutAnswer brought_out() {
  protocol::BroughtOutAnswer brought{.changes = changes()};
  brought.changes_left_out.emplace(1U);
  brought.kept = protocol::KeptAnswer{.name = "k"};
  brought.kept->lost = std::vector<protocol::LeftFacts>{{.path = "p", .why = "w"}};
  return brought;
}

/// What a session could answer.
const std::vector<Json>& answers() {
  static const std::vector<Json> all{
      write_fields(protocol::CallBegun{.call = 1}),
      write_fields(protocol::CallEnded{}),
      write_fields(protocol::ReaderBegun{}),
      write_fields(protocol::ReaderEvent{}),
      write_fields(seen_changes()),
      write_fields(brought_out()),
      write_fields(cell_event()),
      write_fields(ended_cell()),
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

/// Each packet that differs from `right` by one value, which is of another type. What stands in the
/// forms of a value is JSON of any kind.
std::vector<std::string> wrong_packets(const Json& right) {
  std::vector<std::string> packets;
  const Json flat = right.flatten();
  for (const auto& [place, value] : flat.items()) {
    if (place.find("/data/") != std::string::npos) continue;
    Json wrong = right;
    wrong[Json::json_pointer(place)] = Json::array({Json::array()});
    Json::to_cbor(wrong, packets.emplace_back(1, '\2'));
  }
  return packets;
}

TEST(HostileSessions, WithAnyValueOfAnotherTypeAreNotUnderstood) {
  for (const std::string& packet : wrong_packets(write_fields(ended_cell())))
    EXPECT_EQ(cell_ended_by({packet}), "bad-message") << packet;
  for (const std::string& packet : wrong_packets(write_fields(cell_event())))
    EXPECT_EQ(cell_ended_by({packet}), "bad-message") << packet;
  std::string begun(1, '\2');
  Json::to_cbor(write_fields(protocol::ReaderBegun{}), begun);
  for (const std::string& packet : wrong_packets(write_fields(seen_changes())))
    EXPECT_EQ(task_ended_by<protocol::ChangesRequest>({begun, packet}), "bad-message") << packet;
  for (const std::string& packet : wrong_packets(write_fields(brought_out())))
    EXPECT_EQ(task_ended_by<protocol::KeepRequest>({begun, packet}), "bad-message") << packet;
  // Their twins are answers.
  std::string right(1, '\2');
  Json::to_cbor(write_fields(ended_cell()), right);
  EXPECT_EQ(cell_ended_by({right}), "");
  right.resize(1);
  Json::to_cbor(write_fields(brought_out()), right);
  EXPECT_EQ(task_ended_by<protocol::KeepRequest>({begun, right}), "");
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
