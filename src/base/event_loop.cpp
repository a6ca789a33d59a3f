#include "base/event_loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/sys.hpp"

namespace sbx {

Result<EventLoop> EventLoop::make() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::internal, "no-epoll", "cannot make an event loop");
  return EventLoop(UniqueFd(fd));
}

EventLoop::Watch* EventLoop::find(int fd) {
  const auto at = static_cast<std::size_t>(fd);
  return fd >= 0 && at < watches_.size() ? watches_[at].get() : nullptr;
}

Status EventLoop::apply(Watch& watch, std::uint32_t events) {
  watch.events = events;
  if (watch.always_ready) return {};
  if (events == 0) {
    if (watch.in_epoll) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watch.fd, nullptr);
    watch.in_epoll = false;
    return {};
  }
  epoll_event event{.events = events, .data = {.ptr = &watch}};
  const int operation = watch.in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_.get(), operation, watch.fd, &event) == 0) {
    watch.in_epoll = true;
    return {};
  }
  if (errno != EPERM) return fail_errno(ErrorKind::internal, "epoll", "cannot watch a descriptor");
  watch.always_ready = true;
  ++always_ready_;
  return {};
}

Status EventLoop::watch(int fd, std::uint32_t events, FdCallback callback) {
  SBX_ASSERT(find(fd) == nullptr);
  auto entry = std::make_unique<Watch>(Watch{.fd = fd, .callback = std::move(callback)});
  SBX_TRY(apply(*entry, events));
  const auto at = static_cast<std::size_t>(fd);
  if (at >= watches_.size()) watches_.resize(at + 1);
  watches_[at] = std::move(entry);
  return {};
}

void EventLoop::set_events(int fd, std::uint32_t events) {
  Watch* const entry = find(fd);
  if (entry == nullptr || entry->events == events) return;
  (void)apply(*entry, events);  // it could be watched before; only exhausted kernel memory is left
}

void EventLoop::forget(int fd) {
  Watch* const entry = find(fd);
  if (entry == nullptr) return;
  (void)apply(*entry, 0);  // taking out cannot fail
  entry->alive = false;
  if (entry->always_ready) --always_ready_;
  retired_.push_back(std::move(watches_[static_cast<std::size_t>(fd)]));
}

EventLoop::TimerId EventLoop::after(std::chrono::microseconds delay, TimerCallback callback,
                                    std::chrono::microseconds early) {
  const auto wait = static_cast<std::uint64_t>(std::max<std::int64_t>(delay.count(), 0));
  const std::uint64_t deadline = sys::now_microseconds() + wait;
  return timers_.add(deadline, deadline - std::min(static_cast<std::uint64_t>(early.count()), wait),
                     std::move(callback));
}

EventLoop::TimerId EventLoop::at(std::uint64_t deadline_microseconds, TimerCallback callback) {
  return timers_.add(deadline_microseconds, deadline_microseconds, std::move(callback));
}

void EventLoop::cancel(TimerId id) {
  timers_.cancel(id);
}

void EventLoop::dispatch_always_ready() {
  if (always_ready_ == 0) return;
  std::vector<Watch*> ready;
  for (const auto& entry : watches_)
    if (entry != nullptr && entry->always_ready && entry->events != 0) ready.push_back(entry.get());
  for (Watch* entry : ready)
    if (entry->alive && entry->events != 0) entry->callback(entry->events);
}

Status EventLoop::run_once() {
  retired_.clear();
  std::optional<timespec> timeout;
  const bool something_ready =
      always_ready_ > 0 && std::ranges::any_of(watches_, [](const auto& entry) {
        return entry != nullptr && entry->always_ready && entry->events != 0;
      });
  if (something_ready) {
    timeout = timespec{};
  } else if (const auto deadline = timers_.next_deadline()) {
    const std::uint64_t now = sys::now_microseconds();
    const std::uint64_t wait = *deadline > now ? *deadline - now : 0;
    timeout = timespec{.tv_sec = static_cast<time_t>(wait / 1'000'000),
                       .tv_nsec = static_cast<long>(wait % 1'000'000 * 1000)};
  }
  std::array<epoll_event, 64> events;
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   timeout ? &*timeout : nullptr, nullptr);
  if (count < 0 && errno != EINTR)
    return fail_errno(ErrorKind::internal, "epoll", "cannot wait for events");
  for (int i = 0; i < count; ++i) {
    auto* const entry = static_cast<Watch*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (entry->alive && entry->events != 0)
      entry->callback(events[static_cast<std::size_t>(i)].events);
  }
  dispatch_always_ready();
  timers_.fire(sys::now_microseconds());
  return {};
}

}  // namespace sbx
