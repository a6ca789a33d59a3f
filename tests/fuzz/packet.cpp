// A packet that no sbx sent, to a session or to its client: it is refused or read, as it is alone
// or behind a file in memory.

#include <sys/socket.h>

#include <array>
#include <string_view>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "fuzz.hpp"
#include "protocol/packet.hpp"

using namespace sbx;

namespace {

constexpr std::byte kVersion{2};

struct Ends {
  Ends() {
    std::array<int, 2> fds{};
    must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) == 0);
    from = UniqueFd(fds[0]);
    to = UniqueFd(fds[1]);
  }
  UniqueFd from;
  UniqueFd to;
};

void expect_read_or_refused(const Ends& ends) {
  const auto packet = protocol::receive(ends.to.get());
  if (!packet) return must(!packet.error().code.empty());
  must(packet->body.is_object());
  must(!protocol::error_from(packet->body).code.empty() || packet->body.contains("code"));
  // What was read can be sent, and is the same then. Its bytes are compared, as a NaN is not equal
  // to itself.
  const Ends again;
  must(protocol::send(again.from.get(), packet->body).has_value());
  const auto same = protocol::receive(again.to.get());
  must(same.has_value() && Json::to_cbor(same->body) == Json::to_cbor(packet->body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  constexpr std::size_t kLargest = 4096;
  if (size > 0 && size <= kLargest) {
    const Ends ends;
    must(sys::send_message(ends.from.get(), bytes, {}));
    expect_read_or_refused(ends);
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = sys::in_memory(text);
  must(file.has_value());
  const Ends ends;
  const std::array fds{file->get()};
  must(sys::send_message(ends.from.get(), std::span(&kVersion, 1), fds));
  expect_read_or_refused(ends);
  return 0;
}
