#include "session/reader_events.hpp"

#include <fcntl.h>

#include <cstddef>
#include <utility>

#include "base/message.hpp"
#include "protocol/packet.hpp"

namespace sbx::session {
namespace {

constexpr std::uint64_t kBetween = 100'000;  // µs
/// A seventh of what the kernel keeps for a client that does not read: the answer finds room.
constexpr std::size_t kMostUnreadBytes = 32 << 10;

}  // namespace

ReaderEvents::ReaderEvents(int client, Clock now) : client_(client), now_(std::move(now)) {
  (void)::fcntl(client_, F_SETFL, O_NONBLOCK);
}

void ReaderEvents::say(const std::string& lines) {
  protocol::ReaderEvent event{.copied = sum_};
  event.said.emplace(lines);
  send(event);
}

void ReaderEvents::copied(std::uint64_t bytes) {
  const bool begins = bytes == 0;
  sum_ = begins ? 0 : sum_ + bytes;
  if (begins) told_ = 0;
  const std::uint64_t now = now_();
  if ((told_ != 0 && now < told_ + kBetween) || !is_read()) return;
  told_ = begins ? 0 : now;
  send({.copied = sum_});
}

bool ReaderEvents::is_read() const {
  return sys::unread_bytes(client_) < kMostUnreadBytes;
}

void ReaderEvents::send(const protocol::ReaderEvent& event) const {
  (void)protocol::send(client_, event);  // the client may be gone
}

Person ReaderEvents::person() {
  return {.hears = [this](const std::string& lines) { say(lines); }, .answers = {}};
}

Copied ReaderEvents::progress() {
  return [this](std::uint64_t bytes) { copied(bytes); };
}

}  // namespace sbx::session
