#include "client/work.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/json_read.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"

namespace sbx::client {
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
                           [this, ended = std::move(ended)](Cell::Ended cell) {
                             loop_->cancel(std::exchange(timer_, EventLoop::kNoTimer));
                             if (!cell) return ended(fail(std::move(cell).error()));
                             if (cell->failure)
                               return ended(fail(protocol::error_of(std::move(*cell->failure))));
                             ended(with_output(write_fields(cell->cell, Form::document)));
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

Status CommandWork::attach(EventLoop& loop, Ended ended) {
  ended_ = std::move(ended);
  const UniqueFd in = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  const UniqueFd to_out =
      SBX_TRY(from_out_.open(loop, [this](std::string_view bytes) { out.add(bytes); }));
  const UniqueFd to_err =
      SBX_TRY(from_err_.open(loop, [this](std::string_view bytes) { err.add(bytes); }));
  const std::array fds{in.get(), to_out.get(), to_err.get()};
  return call_.attach(
      loop, {.ended = [this](Result<protocol::CallEnded> call) { end(std::move(call)); }}, fds);
}

void CommandWork::end(Result<protocol::CallEnded> call) {
  from_out_.finish();
  from_err_.finish();
  if (!call) return ended_(fail(std::move(call).error()));
  if (call->said) err.add(*call->said);
  Json record = read_json(call->record.value_or(""));
  if (!record.is_object()) return ended_(fail(garbled_record()));
  ended_(with_output(std::move(record)));
}

}  // namespace sbx::client
