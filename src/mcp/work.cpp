#include "mcp/work.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/json_read.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"

namespace sbx::mcp {
namespace {

Error garbled_record() {
  return {.kind = ErrorKind::internal,
          .code = "bad-message",
          .message = "the sandbox gave no record of what ran"};
}

}  // namespace

void Written::add(std::string_view more) {
  constexpr std::size_t kHalf = std::size_t{512} << 10;
  bytes_ += more.size();
  const std::string_view first = more.substr(0, kHalf - std::min(kHalf, head_.size()));
  head_ += first;
  tail_ += more.substr(first.size());
  if (tail_.size() > 2 * kHalf) tail_.erase(0, tail_.size() - kHalf);
}

std::string Written::text() const {
  const std::uint64_t gap = bytes_ - head_.size() - tail_.size();
  if (gap == 0) return head_ + tail_;
  return fmt::format("{}\n[… {} bytes were not kept …]\n{}", head_, gap, tail_);
}

Json Work::with_output(Json record) const {
  record["stdout"]["text"] = lossy_utf8(out.text());
  record["stderr"]["text"] = lossy_utf8(err.text());
  return record;
}

// ---- a cell ----

CellWork::~CellWork() {
  if (loop_ != nullptr) loop_->cancel(timer_);
}

Status CellWork::attach(EventLoop& loop, Ended ended) {
  loop_ = &loop;
  return cell_.attach(loop,
                      {.out = [this](std::string_view bytes) { out.add(bytes); },
                       .err = [this](std::string_view bytes) { err.add(bytes); },
                       .ended =
                           [this, ended = std::move(ended)](client::Cell::Ended cell) {
                             loop_->cancel(std::exchange(timer_, EventLoop::kNoTimer));
                             if (!cell) return ended(fail(std::move(cell).error()));
                             if (cell->failure)
                               return ended(fail(protocol::error_of(std::move(*cell->failure))));
                             if (!cell->cell.is_object()) return ended(fail(garbled_record()));
                             ended(with_output(std::move(cell->cell)));
                           }});
}

/// Its variables stay where it lets itself be interrupted.
void CellWork::cancel() {
  constexpr std::chrono::seconds kPatience{2};
  if (timer_ != EventLoop::kNoTimer) return;
  cell_.cancel(SIGINT);
  timer_ = loop_->after(kPatience, [this] { cell_.cancel(SIGTERM); });
}

// ---- a command ----

CommandWork::~CommandWork() {
  if (loop_ == nullptr) return;
  loop_->forget(from_out_.get());
  loop_->forget(from_err_.get());
}

Status CommandWork::attach(EventLoop& loop, Ended ended) {
  ended_ = std::move(ended);
  const UniqueFd in = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  sys::Pipe out_pipe = SBX_TRY(sys::make_pipe());
  sys::Pipe err_pipe = SBX_TRY(sys::make_pipe());
  from_out_ = std::move(out_pipe.read);
  from_err_ = std::move(err_pipe.read);
  loop_ = &loop;
  for (auto* const each : {&from_out_, &from_err_}) {
    (void)::fcntl(each->get(), F_SETFL, O_NONBLOCK);
    Written& written = each == &from_out_ ? out : err;
    SBX_TRY(loop.watch(each->get(), EPOLLIN, [this, each, &written](std::uint32_t events) {
      if (!read(*each, written) && (events & EPOLLIN) == 0) loop_->forget(each->get());
    }));
  }
  const std::array fds{in.get(), out_pipe.write.get(), err_pipe.write.get()};
  return call_.attach(
      loop, {.ended = [this](Result<protocol::CallEnded> call) { end(std::move(call)); }}, fds);
}

/// False at its end, and where nothing is there.
bool CommandWork::read(UniqueFd& from, Written& to) {
  std::array<char, std::size_t{64} << 10> bytes{};
  const ssize_t got = ::read(from.get(), bytes.data(), bytes.size());
  if (got > 0) to.add({bytes.data(), static_cast<std::size_t>(got)});
  return got > 0 || (got < 0 && errno == EINTR);
}

void CommandWork::end(Result<protocol::CallEnded> call) {
  // It has ended, so what it wrote is in the pipes.
  while (read(from_out_, out)) {
  }
  while (read(from_err_, err)) {
  }
  loop_->forget(from_out_.get());
  loop_->forget(from_err_.get());
  if (!call) return ended_(fail(std::move(call).error()));
  Json record = read_json(call->record.value_or(""));
  if (!record.is_object()) return ended_(fail(garbled_record()));
  ended_(with_output(std::move(record)));
}

}  // namespace sbx::mcp
