#include "session/calls.hpp"

#include <algorithm>
#include <array>

#include "base/sys.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kMostEnded = 64;  ///< of those in the background, and as many others
constexpr std::size_t kMostMemory = std::size_t{64} << 20;  ///< of the logs of ended calls

std::size_t log_memory_of(const Call& call) {
  return call.output == nullptr ? 0 : call.output->memory();
}

}  // namespace

protocol::CallFacts facts_of(const Call& call) {
  const std::uint64_t until = call.runs() ? sys::now_microseconds() : call.ended_microseconds;
  protocol::CallFacts facts{
      .call = call.number,
      .background = call.is_background,
      .state = call.runs() ? protocol::CallState::running : protocol::CallState::ended,
      .command = call.command,
      .since = call.since,
      .exit_status = call.status,
      .wall_ms = (until - call.began_microseconds) / 1000};
  if (call.runs()) facts.pid = call.worker.pid;
  if (call.output == nullptr) return facts;
  facts.stdout_bytes.emplace(call.output->out_bytes());
  facts.stderr_bytes.emplace(call.output->err_bytes());
  return facts;
}

Call& Calls::add() {
  auto call = std::make_unique<Call>();
  call->number = ++last_;
  Call& added = *call;
  all_.emplace(added.number, std::move(call));
  return added;
}

Call* Calls::find(std::uint64_t number) {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : found->second.get();
}

Denial* Call::find_refused(const Denial& denial) {
  const auto found = std::ranges::find_if(refused, [&](const Denial& each) {
    return each.what == denial.what && each.rule == denial.rule;
  });
  return found == refused.end() ? nullptr : &*found;
}

void Call::add_refused(Denial denial, std::uint64_t count, const std::string& process) {
  constexpr std::size_t kMost = 256;
  denial.count = std::max<std::uint64_t>(count, 1);
  denial.process = process;
  if (refused.size() >= kMost) {
    denial = {.kind = DenialKind::network, .what = "others", .count = denial.count};
    if (Denial* const others = find_refused(denial)) {
      others->count += count;
      return;
    }
  }
  refused.push_back(std::move(denial));
}

std::size_t Calls::running() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      all_, [](const auto& each) { return each.second->runs() && !each.second->is_context; }));
}

std::size_t Calls::living() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const auto& each) { return each.second->runs(); }));
}

void Calls::forget_old() {
  std::array<std::size_t, 2> ended{};  // [1]: in the background
  std::size_t memory = 0;
  for (const auto& [number, call] : all_) {
    if (call->runs()) continue;
    ++ended[call->is_background ? 1 : 0];
    memory += log_memory_of(*call);
  }
  for (auto each = all_.begin(); each != all_.end();) {
    const Call& call = *each->second;
    std::size_t& alike = ended[call.is_background ? 1 : 0];
    // The last one that ended stays whatever it takes.
    const bool is_beyond =
        alike > kMostEnded || (call.is_background && alike > 1 && memory > kMostMemory);
    if (call.runs() || !call.is_drained() || !is_beyond) {
      ++each;
      continue;
    }
    --alike;
    memory -= log_memory_of(call);
    each = all_.erase(each);
  }
}

}  // namespace sbx::session
