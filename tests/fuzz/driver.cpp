// What a context's driver writes, which a hostile program in the context may have written: however
// its bytes arrive, the messages are the same, and what is kept of them stays within its bounds.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fields.hpp"
#include "base/text.hpp"
#include "fuzz.hpp"
#include "protocol/packet.hpp"
#include "session/cell_answer.hpp"
#include "session/driver_channel.hpp"
#include "session/drivers.hpp"
#include "session/inspection.hpp"

using namespace sbx;

namespace {

constexpr Bytes kCap{4096};
constexpr std::size_t kMostTold = std::size_t{128} << 10;
constexpr std::string_view kNonce = "0123456789abcdef0123456789abcdef";
constexpr std::string_view kCode = "import os; os.p";

/// The messages of a driver that writes these parts, with a turn of the loop after each.
std::vector<Json> heard(const std::vector<std::string_view>& parts) {
  EventLoop loop = std::move(*EventLoop::make());
  auto channel = std::move(*session::DriverChannel::make(static_cast<uid_t>(-1)));
  std::vector<Json> messages;
  bool broken = false;
  must(channel
           .attach(loop, {.arrived = [] {},
                          .message = [&](const Json& message) { messages.push_back(message); },
                          .broken = [&](const std::string& /*why*/) { broken = true; }})
           .has_value());
  const int replies = channel.driver_ends()[1];
  for (const std::string_view part : parts) {
    if (broken || part.empty()) continue;
    must(::write(replies, part.data(), part.size()) == static_cast<ssize_t>(part.size()));
    must(loop.run_once().has_value());
  }
  channel.close_driver_ends();
  while (!broken) must(loop.run_once().has_value());
  return messages;
}

void answer_a_cell(std::vector<Json> messages) {
  session::CellAnswer answer(std::string(kNonce), 1, kCap);
  for (Json& message : messages) {
    message["nonce"] = kNonce;
    (void)answer.take(message);
    // A client that follows the cell can read what it is told.
    if (answer.last())
      must(read_fields<protocol::CellEvent>(write_fields(*answer.last())).has_value());
  }
  std::uint64_t kept = 0;
  const auto all = answer.answer();
  if (!all) return;
  must(read_fields<protocol::InterpreterAnswer>(write_fields(*all)).has_value());
  for (const protocol::CellResult& result : all->results)
    for (const auto& [mime, value] : result.data) {
      must(mime.size() <= 200);
      kept += value.is_string() ? value.get_ref<const std::string&>().size() : 0;
    }
  // An update keeps a display's content once for each place where it is shown.
  must(kept <= kCap.count * (1 + all->results.size()));
}

void answer_a_question(std::vector<Json> messages, protocol::Question asked) {
  std::array<int, 2> ends{};
  must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const UniqueFd client(ends[0]);
  std::vector<UniqueFd> fds;
  fds.emplace_back(ends[1]);
  auto question = session::Inspection::receive(
      protocol::InspectRequest{.question = asked, .code = std::string(kCode)}, std::move(fds));
  must(question.has_value());
  const Json request = Json::parse(question->begin(session::Driver{}));
  for (Json& message : messages) {
    message["nonce"] = request["nonce"];
    (void)question->take(message);
  }
  question->answer("python", "python", 1);
  auto told = protocol::receive(client.get());
  must(told.has_value());
  must(told->body.dump().size() <= kMostTold);
  const auto said = protocol::answer_from<protocol::InspectAnswer>(std::move(told->body));
  must(said.has_value());
  if (!said->matches) return;
  for (const std::string& text : *said->matches) must(printable(text) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOfPipe = 60'000;
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, kOfPipe));
  const std::vector<Json> messages = heard({bytes});
  const std::size_t cut = bytes.empty() ? 0 : data[bytes.size() - 1] % (bytes.size() + 1);
  must(heard({bytes.substr(0, cut), bytes.substr(cut)}) == messages);
  answer_a_cell(messages);
  answer_a_question(messages, protocol::Question::completeness);
  answer_a_question(messages, protocol::Question::completion);
  return 0;
}
