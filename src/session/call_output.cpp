#include "session/call_output.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "protocol/packet.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kLogReadAtOnce = std::size_t{64} << 10;

}  // namespace

CallOutput::~CallOutput() {
  for (const Stream* const each : {&out_, &err_})
    if (each->pipe.valid()) loop_.forget(each->pipe.get());
}

Status CallOutput::begin(UniqueFd out, UniqueFd err) {
  SBX_TRY(watch(out_, std::move(out)));
  return watch(err_, std::move(err));
}

Status CallOutput::watch(Stream& stream, UniqueFd pipe) {
  stream.pipe = std::move(pipe);
  (void)::fcntl(stream.pipe.get(), F_SETFL, O_NONBLOCK);
  return loop_.watch(stream.pipe.get(), EPOLLIN,
                     [this, &stream](std::uint32_t) { (void)read(stream); });
}

bool CallOutput::read(Stream& stream) {
  std::string bytes(kLogReadAtOnce, '\0');
  const ssize_t got = ::read(stream.pipe.get(), bytes.data(), bytes.size());
  if (got < 0) return false;  // EAGAIN
  if (got > 0) {
    stream.log.add(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)));
    answer_followers();
    return true;
  }
  loop_.forget(stream.pipe.get());
  stream.pipe.reset();
  if (is_drained()) hooks_.drained();
  return false;
}

void CallOutput::add_last(std::string_view words) {
  constexpr int kMostReads = 64;  // 4 MiB, more than a pipe holds
  for (Stream* const each : {&out_, &err_})
    for (int i = 0; i < kMostReads && each->pipe.valid() && read(*each); ++i) {
    }
  err_.log.add(words);
  answer_followers();
}

void CallOutput::answer(const protocol::LogsRequest& request, UniqueFd connection) {
  Follower client{.connection = std::move(connection), .out = request.out, .err = request.err};
  if (!request.follow) return (void)tell(client);
  const bool has_more = out_bytes() > request.out || err_bytes() > request.err;
  if (has_more || ended_) return answer_follower(std::move(client));
  followers_.push_back(std::move(client));
}

Status CallOutput::tell(const Follower& client) const {
  return protocol::send(client.connection.get(),
                        protocol::LogAnswer{.out = out_bytes(),
                                            .err = err_bytes(),
                                            .ended = ended_,
                                            .out_text = out_.log.since(client.out),
                                            .err_text = err_.log.since(client.err)});
}

/// While the call is not over, its follower asks for the rest on the same connection.
void CallOutput::answer_follower(Follower client) {
  if (tell(client) && !ended_) (void)hooks_.await(std::move(client.connection));
}

void CallOutput::answer_followers() {
  for (Follower& each : std::exchange(followers_, {})) answer_follower(std::move(each));
}

void CallOutput::end() {
  ended_ = true;
  out_.log.close();
  err_.log.close();
  answer_followers();
}

}  // namespace sbx::session
