#include "session/spare_contexts.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <span>

#include "base/message.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

/// A start beside a cell that comes right after another one would slow that down.
constexpr auto kRests = 100ms;

}  // namespace

void SpareContexts::note_use(const std::string& language) {
  wanted_.insert(language);
  look_soon();
}

void SpareContexts::look_soon() {
  loop_.cancel(std::exchange(timer_, EventLoop::kNoTimer));
  if (wanted_.empty() && all_.empty()) return;
  timer_ = loop_.after(kRests, [this] { look(); });
}

void SpareContexts::look() {
  timer_ = EventLoop::kNoTimer;
  if (hooks_.living() == 0 || !hooks_.has_room()) return end_all();
  fit(hooks_.living());
  if (!hooks_.rests()) return;  // whatever ends calls again
  for (const std::string& language : std::exchange(wanted_, {}))
    if (!all_.contains(language) && hooks_.living() + all_.size() + 2 <= most_) start(language);
}

void SpareContexts::start(const std::string& language) {
  auto worker = hooks_.start(language);
  if (!worker) return;
  SpareContext& spare = all_[language];
  spare.worker = std::move(*worker);
  const auto hears = [&](int fd) {
    return loop_.watch(fd, EPOLLIN, [this, language](std::uint32_t) { on_message(language); });
  };
  // What it asks, and its end, are the end of a spare.
  const auto ends = [&](int fd) {
    return loop_.watch(fd, EPOLLIN, [this, language](std::uint32_t) { end(language); });
  };
  if (!hears(spare.worker.link.get()) || !ends(spare.worker.ask.get()) ||
      !ends(spare.worker.process.get()))
    end(language);
}

void SpareContexts::on_message(const std::string& language) {
  Note note{};
  const SpareContext& spare = all_[language];
  const sys::Message message =
      sys::receive_message(spare.worker.link.get(), std::as_writable_bytes(std::span(&note, 1)));
  if (message.length == sizeof note && note.what == Note::What::began)
    all_[language].init = note.value;
  else
    end(language);
}

std::optional<SpareContext> SpareContexts::take(const std::string& language) {
  if (!all_.contains(language)) return {};
  return leave(language);
}

void SpareContexts::fit(std::size_t living) {
  while (!all_.empty() && living + all_.size() + 1 > most_) end(all_.begin()->first);
}

void SpareContexts::end_all() {
  wanted_.clear();
  while (!all_.empty()) end(all_.begin()->first);
}

/// `language` may be the key of the entry that goes.
void SpareContexts::end(const std::string& language) {
  hooks_.dismiss(std::move(leave(language).worker));
}

SpareContext SpareContexts::leave(const std::string& language) {
  const auto found = all_.find(language);
  for (const UniqueFd* const each :
       {&found->second.worker.process, &found->second.worker.link, &found->second.worker.ask})
    loop_.forget(each->get());
  SpareContext left = std::move(found->second);
  all_.erase(found);
  return left;
}

}  // namespace sbx::session
