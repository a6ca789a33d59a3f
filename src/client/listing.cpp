#include "client/listing.hpp"

#include <fcntl.h>
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

Status Listing::attach(EventLoop& loop, Hooks hooks) {
  hooks_ = std::move(hooks);
  const UniqueFd in = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  const UniqueFd out = SBX_TRY(out_.open(loop, [this](std::string_view bytes) {
    if (text_.size() < kLongest) text_ += bytes;
  }));
  const std::array fds{in.get(), out.get(), STDERR_FILENO};
  return task_.attach(
      loop, {.ended = [this](Result<protocol::CallEnded> call) { end(std::move(call)); }}, fds);
}

void Listing::end(Result<protocol::CallEnded> call) {
  out_.finish();
  if (!call) return hooks_.ended(fail(std::move(call).error()));
  const auto file = sys::in_memory(text_);
  if (!file) return hooks_.ended(fail(file.error()));
  auto listing = transfer::read_listing(file->get(), depth_);
  if (!listing) return hooks_.ended(fail(std::move(listing).error()));
  hooks_.ended(DirectoryListing{
      .listing = std::move(*listing), .status = call->status, .said = call->said.value_or("")});
}

Listing::Ended Listing::run() {
  EventLoop loop = SBX_TRY(EventLoop::make());
  std::optional<Ended> result;
  SBX_TRY(attach(loop, {.ended = [&](Ended ended) { result.emplace(std::move(ended)); }}));
  return run_until(loop, result);
}

}  // namespace sbx::client
