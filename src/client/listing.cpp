#include "client/listing.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/sys.hpp"
#include "run/launch.hpp"

namespace sbx::client {
namespace {

/// A listing is cut long before that.
constexpr std::size_t kLongest = std::size_t{64} << 20;

}  // namespace

Listing::Listing(session::Client connection, const std::string& path, std::uint64_t depth)
    : task_(std::move(connection), {.id = run::make_run_id(),
                                    .title = std::string("ls"),
                                    .words = transfer::ls_arguments(path, depth)}),
      depth_(depth) {}

Listing::~Listing() {
  if (loop_ != nullptr) loop_->forget(from_.get());
}

Status Listing::attach(EventLoop& loop, Hooks hooks) {
  hooks_ = std::move(hooks);
  const UniqueFd in = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  sys::Pipe out = SBX_TRY(sys::make_pipe());
  (void)::fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  from_ = std::move(out.read);
  const std::array fds{in.get(), out.write.get(), STDERR_FILENO};
  SBX_TRY(task_.attach(
      loop, {.ended = [this](Result<protocol::CallEnded> call) { end(std::move(call)); }}, fds));
  loop_ = &loop;
  return loop.watch(from_.get(), EPOLLIN, [this](std::uint32_t) { read(); });
}

void Listing::read() {
  std::array<char, std::size_t{64} << 10> bytes{};
  const ssize_t got = ::read(from_.get(), bytes.data(), bytes.size());
  if (got > 0 && text_.size() < kLongest)
    text_.append(bytes.data(), static_cast<std::size_t>(got));
  else if (got == 0)
    loop_->forget(from_.get());
}

/// The call has ended, so what it wrote is in the pipe.
void Listing::end(Result<protocol::CallEnded> call) {
  for (std::size_t before = text_.size() + 1; before != text_.size();) {
    before = text_.size();
    read();
  }
  loop_->forget(from_.get());
  loop_ = nullptr;
  if (!call) return hooks_.ended(fail(std::move(call).error()));
  const auto file = sys::in_memory(text_);
  if (!file) return hooks_.ended(fail(file.error()));
  auto listing = transfer::read_listing(file->get(), depth_);
  if (!listing) return hooks_.ended(fail(std::move(listing).error()));
  hooks_.ended(DirectoryListing{.listing = std::move(*listing), .status = call->status});
}

Listing::Ended Listing::run() {
  EventLoop loop = SBX_TRY(EventLoop::make());
  std::optional<Ended> result;
  SBX_TRY(attach(loop, {.ended = [&](Ended ended) { result.emplace(std::move(ended)); }}));
  return run_until(loop, result);
}

}  // namespace sbx::client
