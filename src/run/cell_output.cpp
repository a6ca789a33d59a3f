#include "run/cell_output.hpp"

#include <fcntl.h>

#include <chrono>

#include "run/settings.hpp"

namespace sbx::run {
namespace {

using namespace std::chrono_literals;
using supervise::OutputRelay;

/// A thread that goes on writing never leaves the pipes empty. What was there when the cell was
/// done is read long before.
constexpr auto kPatience = 200ms;

UniqueFd copy_of(const UniqueFd& pipe) {
  return UniqueFd(pipe.valid() ? ::fcntl(pipe.get(), F_DUPFD_CLOEXEC, 3) : -1);
}

}  // namespace

Status CellOutput::begin(Side& side, int sink, OutputRelay::Options options) {
  side.drain.reset();
  side.relay.reset();
  side.is_given_up = false;
  options.finished = [this] { look_soon(); };
  side.relay = std::make_unique<OutputRelay>(loop_, copy_of(side.pipe), sink, std::move(options));
  return side.relay->start();
}

Status CellOutput::begin(const Target& target) {
  completes_ = false;
  const policy::Output* const caps = target.caps;
  const auto options = [&](const char* name, const auto& captured, const std::string& late) {
    OutputRelay::Options chosen{.name = name, .before = late};
    if (caps == nullptr) {
      chosen.cap = kMostLate;
      chosen.capture = true;
      return chosen;
    }
    chosen.cap = target.capture ? (caps->*captured).value : caps->passed.value;
    chosen.capture = target.capture;
    chosen.on_exceed = on_exceed(caps->exceed.value);
    chosen.exceeded = target.exceeded;
    chosen.left = target.left;
    return chosen;
  };
  SBX_TRY(begin(out_, target.out, options("stdout", &policy::Output::stdout_, target.late_out)));
  return begin(err_, target.err, options("stderr", &policy::Output::stderr_, target.late_err));
}

/// Later: the relay that calls this at its end must return first.
void CellOutput::look_soon() {
  if (soon_ != EventLoop::kNoTimer) return;
  soon_ = loop_.after(0us, [this] {
    soon_ = EventLoop::kNoTimer;
    settle();
  });
}

void CellOutput::replace_ended(Side& side) {
  if (side.drain || !side.relay || !side.relay->done()) return;
  side.drain = std::make_unique<OutputRelay>(loop_, copy_of(side.pipe), -1,
                                             OutputRelay::Options{.name = "drain"});
  (void)side.drain->start();  // without it the interpreter waits at worst
}

/// What nobody reads any more is not of the next cell. The relay may have ended only now, and a
/// drain rests while much arrives.
void CellOutput::drop_rest(Side& side) {
  if (!side.relay || (!side.relay->has_left() && !side.is_given_up)) return;
  replace_ended(side);
  if (side.drain) side.drain->source_is_complete();
  side.drain.reset();
}

bool CellOutput::is_done() const {
  return (!out_.relay || out_.relay->done()) && (!err_.relay || err_.relay->done());
}

void CellOutput::complete(std::function<void()> then) {
  then_ = std::move(then);
  completes_ = true;
  for (Side* const side : {&out_, &err_})
    if (side->relay) side->relay->source_is_complete();
  if (is_done()) return look_soon();
  patience_ = loop_.after(kPatience, [this] { look_again(); });
}

void CellOutput::look_again() {
  for (Side* const side : {&out_, &err_})
    if (side->relay && !side->relay->done() && !side->relay->blocked()) side->relay->abandon();
  if (!is_done()) patience_ = loop_.after(kPatience, [this] { look_again(); });
}

OutputPosition CellOutput::delivered() {
  const auto of = [](const Side& side) {
    if (!side.relay) return std::uint64_t{0};
    side.relay->look();
    return side.relay->delivered();
  };
  const std::uint64_t out = of(out_);
  return {out, of(err_)};
}

void CellOutput::abandon() {
  for (Side* const side : {&out_, &err_}) {
    side->is_given_up = true;
    if (side->relay) side->relay->abandon();
  }
}

void CellOutput::settle() {
  if (!completes_) {
    replace_ended(out_);
    return replace_ended(err_);
  }
  if (!then_ || !is_done()) return;
  drop_rest(out_);
  drop_rest(err_);
  loop_.cancel(patience_);
  patience_ = EventLoop::kNoTimer;
  std::exchange(then_, {})();
}

std::pair<Stream, Stream> CellOutput::take() {
  return {out_.relay ? out_.relay->take() : Stream{}, err_.relay ? err_.relay->take() : Stream{}};
}

std::optional<WriteError> CellOutput::write_error() const {
  for (const auto& [side, name] : {std::pair(&out_, "stdout"), std::pair(&err_, "stderr")})
    if (side->relay && side->relay->write_error() != 0)
      return WriteError{.stream = name, .errno_value = side->relay->write_error()};
  return std::nullopt;
}

}  // namespace sbx::run
