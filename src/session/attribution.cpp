#include "session/attribution.hpp"

#include <algorithm>
#include <optional>
#include <ranges>

namespace sbx::session {
namespace {

/// A call that was told to end has this long before another one is chosen.
constexpr std::uint64_t kDiesWithin = 1'000'000;  // microseconds

/// What has been added since.
std::vector<NetworkFailure> new_failures(const std::vector<NetworkFailure>& before,
                                         std::vector<NetworkFailure> now) {
  for (const NetworkFailure& old : before)
    for (NetworkFailure& each : now)
      if (each.what == old.what && each.why == old.why)
        each.count -= std::min(each.count, old.count);
  std::erase_if(now, [](const NetworkFailure& each) { return each.count == 0; });
  return now;
}

}  // namespace

void Attribution::refused(const Denial& denial, std::uint64_t count,
                          const std::function<std::string()>& process_name) {
  const auto calls = calls_.all() | std::views::values;
  const bool has_any =
      std::ranges::any_of(calls, [this](const auto& call) { return does_something(*call); });
  std::optional<std::string> process;
  for (const auto& call : calls) {
    // Where nobody does anything it was a thread or process that a cell has left behind.
    if (has_any ? !does_something(*call) : !call->runs()) continue;
    Denial* const known = call->find_refused(denial);
    if (known != nullptr) {
      known->count += count;
      continue;
    }
    if (!process) process = process_name();
    call->add_refused(denial, count, *process);
  }
}

run::NetworkTrouble Attribution::take_trouble(Call& call, std::vector<NetworkFailure> now) {
  run::NetworkTrouble trouble{
      .refused = std::exchange(call.refused, {}),  // a context asks after each cell
      .failed = new_failures(call.failed_before, now)};
  // What failed meanwhile is of a call that did something: a context that waits has no part in it.
  for (const auto& [number, other] : calls_.all())
    if (!does_something(*other)) other->failed_before = now;
  call.failed_before = std::move(now);
  return trouble;
}

run::MostProcesses Attribution::most_processes() {
  const Call* most = nullptr;
  std::uint64_t count = 0;
  for (const auto& [number, call] : calls_.all()) {
    const std::uint64_t tasks = call->runs() && call->init > 0 ? meters_.tasks(call->init) : 0;
    if (tasks <= count) continue;
    most = call.get();
    count = tasks;
  }
  if (most == nullptr) return {};
  const Context* const context = most->is_context ? contexts_.of_call(most->number) : nullptr;
  const std::string number = std::to_string(most->number);
  return {.who = context != nullptr ? "context " + context->name : "call " + number,
          .cure = context != nullptr ? "sbx session restart " + session_ + " " + context->name
                                     : "sbx session kill " + session_ + " " + number,
          .count = count};
}

/// A context that waits for a cell does not.
bool Attribution::does_something(const Call& call) {
  if (!call.runs()) return false;
  const Context* const context = call.is_context ? contexts_.of_call(call.number) : nullptr;
  return context == nullptr || context->open > 0;
}

Call* Attribution::most_memory(std::uint64_t now_microseconds) {
  Call* largest = nullptr;
  std::uint64_t most = 0;
  for (const auto& [number, call] : calls_.all()) {
    if (!call->runs() || call->init < 0) continue;
    if (call->kill_requested_at != 0 && now_microseconds - call->kill_requested_at < kDiesWithin)
      return nullptr;
    const std::uint64_t held = meters_.memory(call->init);
    if (held < most) continue;
    most = held;
    largest = call.get();
  }
  return largest;
}

}  // namespace sbx::session
