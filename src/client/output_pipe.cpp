#include "client/output_pipe.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/sys.hpp"

namespace sbx::client {

Result<UniqueFd> OutputPipe::open(EventLoop& loop, Deliver deliver) {
  close();
  sys::Pipe pipe = SBX_TRY(sys::make_pipe());
  (void)::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  SBX_TRY(loop.watch(pipe.read.get(), EPOLLIN, [this](std::uint32_t) {
    if (read() == 0) loop_->forget(from_.get());
  }));
  loop_ = &loop;
  from_ = std::move(pipe.read);
  deliver_ = std::move(deliver);
  return std::move(pipe.write);
}

ssize_t OutputPipe::read() {
  std::array<char, std::size_t{64} << 10> bytes{};
  const ssize_t got = ::read(from_.get(), bytes.data(), bytes.size());
  if (got > 0) deliver_({bytes.data(), static_cast<std::size_t>(got)});
  return got;
}

void OutputPipe::finish() {
  while (from_.valid() && read() > 0) {
  }
  close();
}

void OutputPipe::close() {
  if (from_.valid()) loop_->forget(from_.get());
  from_.reset();
}

}  // namespace sbx::client
