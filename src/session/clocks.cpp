#include "session/clocks.hpp"

#include <algorithm>

#include "base/sys.hpp"

namespace sbx::session {

using std::chrono::microseconds;

void Clocks::begin(Milliseconds lifetime) {
  note_use();
  watch_idle();
  extend(lifetime);
}

void Clocks::note_use() {
  last_use_ = sys::now_microseconds();
}

void Clocks::extend(Milliseconds lifetime) {
  ends_at_ = sys::now_microseconds() + static_cast<std::uint64_t>(microseconds(lifetime).count());
  watch_lifetime();
}

microseconds Clocks::left() const {
  const std::uint64_t now = sys::now_microseconds();
  return microseconds(std::max(ends_at_, now) - now);
}

void Clocks::watch_idle() {
  if (hooks_.is_used()) note_use();
  const microseconds unused(sys::now_microseconds() - last_use_);  // now is not before the last use
  if (unused >= idle_) return hooks_.idle();
  constexpr microseconds kAfter{1000};
  loop_.after(std::min(idle_ - unused + kAfter, idle_), [this] { watch_idle(); });
}

void Clocks::watch_lifetime() {
  if (left() == microseconds::zero()) return hooks_.over();
  loop_.cancel(lifetime_);  // there is one already where the session is extended
  lifetime_ = loop_.after(left(), [this] { watch_lifetime(); });
}

}  // namespace sbx::session
