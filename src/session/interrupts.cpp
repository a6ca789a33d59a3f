#include "session/interrupts.hpp"

namespace sbx::session {

void Interrupts::begin(Children children, std::function<void()> gave_up) {
  end();
  interrupt();
  if (children == Children::end)
    children_ = loop_.after(times_.children_end, signals_.end_children);
  grace_ = loop_.after(times_.grace, std::move(gave_up));
}

void Interrupts::interrupt() {
  signals_.interrupt();
  if (is_under_way_ && !is_heard_) signals_.unheard();
  is_under_way_ = true;
  repeat_ =
      loop_.after(is_heard_ ? times_.repeats_to_hearer : times_.repeats, [this] { interrupt(); });
}

void Interrupts::heard() {
  if (!is_under_way_ || is_heard_) return;
  is_heard_ = true;
  loop_.cancel(repeat_);
  repeat_ = loop_.after(times_.repeats_to_hearer, [this] { interrupt(); });
}

void Interrupts::end() {
  for (const EventLoop::TimerId each : {repeat_, children_, grace_}) loop_.cancel(each);
  is_under_way_ = is_heard_ = false;
}

}  // namespace sbx::session
