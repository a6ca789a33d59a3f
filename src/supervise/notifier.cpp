#include "supervise/notifier.hpp"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/sys.hpp"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS  // Linux 6.6
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

namespace sbx::supervise {
namespace {

constexpr std::uint64_t kAtFullSpeed = 1000;
constexpr int kPerWindow = 16;
constexpr std::uint64_t kWindowMicroseconds = 1000;
/// Rest relative to the CPU time spent: 1 in 12, which leaves room for the scheduler's overhead
/// within 1 in 10.
constexpr std::uint64_t kRestFactor = 12;
/// Cost of one call that isn't measured here: the wake-up and the loop.
constexpr std::uint64_t kUnmeasuredNanoseconds = 3000;
/// In CPU time: some 2,000 calls.
constexpr std::int64_t kMostCredit = 20'000'000;
/// With this many waiting calls, those whose callers were killed are swept out.
constexpr std::size_t kFirstSweep = 1024;
constexpr std::size_t kMostNames = 256;
/// A newer kernel's structures may be longer than those of our headers; both must be zeroed.
constexpr std::size_t kRoom = 512;

union Call {
  seccomp_notif notification;
  char room[kRoom];
};
union Answer {
  seccomp_notif_resp response;
  char room[kRoom];
};

std::uint64_t cpu_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Notifier::Notifier(EventLoop& loop, int listener, Options options)
    : loop_(loop), listener_(listener), options_(std::move(options)) {}

Notifier::~Notifier() {
  stop();
}

Status Notifier::start() {
  if (listener_ < 0) return {};
  // The caller runs on our CPU as soon as we sleep: 3.4 us a call instead of 15. An older kernel
  // returns EINVAL and is merely slower.
  (void)::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
  return loop_.watch(listener_, EPOLLIN, [this](std::uint32_t events) { readable(events); });
}

void Notifier::stop() {
  loop_.cancel(std::exchange(rest_, EventLoop::kNoTimer));
  waiting_.clear();
  if (listener_ >= 0) loop_.forget(std::exchange(listener_, -1));
}

void Notifier::readable(std::uint32_t events) {
  if ((events & EPOLLIN) == 0) return stop();  // hang-up: no process is under the filter any more
  if (received_ < kAtFullSpeed) {
    if (const std::optional<Waiting> call = receive()) (void)answer(*call);
    return;
  }
  const std::uint64_t before = cpu_nanoseconds();
  earn();
  if (const std::optional<Waiting> call = receive()) {
    if (call->is_noted && credit_ > 0)
      (void)answer(*call);
    else
      answer_later(*call);
  }
  if (listener_ < 0) return;
  if (rest_ == EventLoop::kNoTimer) answer_what_is_due();
  spend(cpu_nanoseconds() - before + kUnmeasuredNanoseconds);
}

void Notifier::earn() {
  const std::uint64_t now = sys::now_microseconds();
  const std::uint64_t earned = (now - earned_until_) * 1000 / kRestFactor;
  earned_until_ = now;
  credit_ = std::min(credit_ + static_cast<std::int64_t>(earned), kMostCredit);
}

void Notifier::spend(std::uint64_t nanoseconds) {
  window_cost_ += nanoseconds;
  credit_ -= static_cast<std::int64_t>(nanoseconds);
}

std::optional<Notifier::Waiting> Notifier::receive() {
  Call call;
  std::memset(&call, 0, sizeof call);
  if (::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
    // ENOENT: the caller was killed between the event and this call. EINTR: the call is reported
    // again.
    if (errno != ENOENT && errno != EINTR && errno != EAGAIN) stop();
    return std::nullopt;
  }
  ++received_;
  const LastCall& known = look_up(call.notification);
  if (known.note != nullptr) return look_at(call.notification, *known.note);
  ++denials_[known.entry].count;
  if (options_.kill) {
    const std::string what = denials_[known.entry].what;
    stop();
    options_.kill(what);
    return std::nullopt;
  }
  return Waiting{.id = call.notification.id, .errno_value = known.errno_value};
}

/// False if the caller was killed meanwhile.
bool Notifier::answer(const Waiting& call) const {
  if (call.taken_by != nullptr) {
    call.taken_by->take(call.call, CallerMemory(listener_, call.id, call.thread));
    return true;
  }
  Answer answer;
  std::memset(&answer, 0, sizeof answer);
  answer.response.id = call.id;
  if (call.goes_on)
    answer.response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  else
    answer.response.error = -call.errno_value;
  return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

void Notifier::answer_later(const Waiting& call) {
  waiting_.push_back(call);
  if (waiting_.size() < std::max(sweep_at_, kFirstSweep)) return;
  std::erase_if(waiting_, [this](Waiting& one) {
    return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &one.id) != 0;
  });
  sweep_at_ = waiting_.size() * 2;
}

void Notifier::answer_what_is_due() {
  while (!waiting_.empty() && !rests()) {
    if (answer(waiting_.front())) ++answered_in_window_;
    waiting_.pop_front();
  }
  if (waiting_.empty()) return;
  rest_ = loop_.at(window_end(), [this] {
    rest_ = EventLoop::kNoTimer;
    const std::uint64_t before = cpu_nanoseconds();
    answer_what_is_due();
    spend(cpu_nanoseconds() - before + kUnmeasuredNanoseconds);
  });
}

std::uint64_t Notifier::window_end() const {
  return window_start_ + std::max(kWindowMicroseconds, window_cost_ * kRestFactor / 1000);
}

/// True if the answers of this window are used up. Starts a new window when the old one is over.
bool Notifier::rests() {
  const std::uint64_t now = sys::now_microseconds();
  if (now >= window_end()) {
    window_start_ = now;
    window_cost_ = 0;
    answered_in_window_ = 0;
  }
  return answered_in_window_ >= kPerWindow;
}

/// A flood mostly repeats one call with the same arguments: it is explained only once.
const Notifier::LastCall& Notifier::look_up(const ::seccomp_notif& call) {
  std::uint64_t arguments[6];
  for (std::size_t i = 0; i < 6; ++i) arguments[i] = call.data.args[i];
  if (last_.number == call.data.nr && std::ranges::equal(arguments, last_.arguments)) return last_;
  last_.number = call.data.nr;
  std::ranges::copy(arguments, last_.arguments);
  last_.errno_value = EPERM;
  last_.note = nullptr;
  Denial denial{.kind = DenialKind::syscall, .what = "system call " + std::to_string(call.data.nr)};
  if (options_.explain) denial = options_.explain(call.data.nr, arguments, last_.errno_value);
  if (options_.explain && last_.errno_value == 0) last_.note = note_of(call.data.nr);
  if (last_.note != nullptr) return last_;
  if (last_.errno_value <= 0) last_.errno_value = EPERM;  // 0 would mean success
  last_.entry = entry_of(std::move(denial), call.pid);
  return last_;
}

const Note* Notifier::note_of(int number) const {
  const auto found = std::ranges::find(options_.notes, number, &Note::number);
  return found == options_.notes.end() ? nullptr : &*found;
}

Notifier::Waiting Notifier::look_at(const ::seccomp_notif& call, const Note& note) const {
  NotedCall noted{.number = call.data.nr};
  for (std::size_t i = 0; i < 6; ++i) noted.arguments[i] = call.data.args[i];
  const CallerMemory memory(listener_, call.id, call.pid);
  Waiting waiting{.id = call.id, .is_noted = true};
  if (note.take) {
    waiting.taken_by = &note;
    waiting.call = noted;
    waiting.thread = call.pid;
    return waiting;
  }
  if (!note.answer) {
    note.look(noted, memory);
    waiting.goes_on = true;
    return waiting;
  }
  const std::optional<int> error = note.answer(noted, memory);
  waiting.goes_on = !error;
  waiting.errno_value = error.value_or(0);
  return waiting;
}

std::size_t Notifier::entry_of(Denial denial, std::uint32_t process) {
  const auto position = [this](const Denial& wanted) {
    const auto found = std::ranges::find_if(denials_, [&](const Denial& seen) {
      return seen.what == wanted.what && seen.kind == wanted.kind;
    });
    return static_cast<std::size_t>(found - denials_.begin());
  };
  std::size_t at = position(denial);
  if (at == denials_.size() && at >= kMostNames) {
    denial = Denial{.kind = DenialKind::syscall, .what = "others"};
    at = position(denial);
  }
  if (at == denials_.size()) {
    denial.count = 0;
    denial.process = process_name(process);
    denials_.push_back(std::move(denial));
    if (options_.events != nullptr) options_.events->denied(denials_.back());
  }
  return at;
}

}  // namespace sbx::supervise
