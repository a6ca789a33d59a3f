#include "session/ending.hpp"

#include <chrono>

#include "protocol/packet.hpp"
#include "protocol/requests.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

/// The calls have 2 s to end, as a cancelled run has, and a moment to be killed.
constexpr auto kStopsWithin = 4s;
/// A program chooses how much there is to keep.
constexpr auto kKeepsWithin = 60s;

}  // namespace

void Ending::stop(UniqueFd connection) {
  stoppers_.push_back(std::move(connection));
  keep_as_.clear();
  begin(EndCause::stop);
}

void Ending::begin(EndCause cause) {
  if (begun_) return look();
  begun_ = true;
  hooks_.end_calls(cause);
  loop_.after(kStopsWithin, [this] { end_late(); });
  look();
}

void Ending::begin_without_calls() {
  begun_ = true;
  look();
}

void Ending::end_late() {
  is_late_ = true;
  if (keep_as_.empty() && !is_keeping_) {
    over_ = true;
    return;
  }
  loop_.after(kKeepsWithin, [this] { over_ = true; });
  look();
}

void Ending::look() {
  if (!begun_ || hooks_.is_reading() || (hooks_.has_calls() && !is_late_)) return;
  // The output of ended calls may still be on its way to those who follow it.
  if (!hooks_.all_is_told() && !is_late_) {
    loop_.cancel(looks_);
    looks_ = loop_.after(1ms, [this] { look(); });
    return;
  }
  // The end goes on when they are kept. Nobody hears the answer.
  const std::string set = std::exchange(keep_as_, {});
  is_keeping_ = !set.empty() && hooks_.keep(set);
  if (!is_keeping_) over_ = true;
}

void Ending::tell_stoppers() const {
  for (const UniqueFd& each : stoppers_) (void)protocol::send(each.get(), protocol::DoneAnswer{});
}

}  // namespace sbx::session
