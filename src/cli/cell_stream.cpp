#include "cli/cell_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/sys.hpp"

namespace sbx::cli {

Result<UniqueFd> CellStream::open(Deliver deliver) {
  sys::Pipe pipe = SBX_TRY(sys::make_pipe());
  (void)::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  from_ = std::move(pipe.read);
  deliver_ = std::move(deliver);
  return std::move(pipe.write);
}

bool CellStream::read() {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  const std::size_t before = read_.size();
  ssize_t got = 0;
  read_.resize_and_overwrite(before + kAtOnce, [&](char* bytes, std::size_t) {
    got = ::read(from_.get(), bytes + before, kAtOnce);
    return before + static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  });
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void CellStream::deliver_until(std::uint64_t position) {
  constexpr int kComesWithin = 1000;  // ms; what is dropped on its way never comes
  if (position <= delivered_) return;
  const std::uint64_t wanted = position - delivered_;
  while (read_.size() < wanted) {
    pollfd has{from_.get(), POLLIN, 0};
    if (::poll(&has, 1, kComesWithin) <= 0 || !read()) break;
  }
  deliver(std::min<std::uint64_t>(wanted, read_.size()));
}

void CellStream::deliver() {
  deliver(read_.size());
}

void CellStream::deliver(std::size_t count) {
  if (count == 0) return;
  delivered_ += count;
  deliver_(std::string_view(read_).substr(0, count));
  read_.erase(0, count);
}

}  // namespace sbx::cli
