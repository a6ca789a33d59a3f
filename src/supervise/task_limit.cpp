#include "supervise/task_limit.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/sys.hpp"
#include "base/unique_fd.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

constexpr int kNumbers[] = {
#if defined(__x86_64__)
    SYS_fork, SYS_vfork,
#endif
    SYS_clone, SYS_clone3};

constexpr bool makes_task(long number) {
  return std::ranges::find(kNumbers, number) != std::end(kNumbers);
}

/// The fields of proc_pid_stat(5) from the state on, of this thread alone.
std::string_view thread_facts(int directory, pid_t thread, std::span<char> room) {
  const std::string name = "task/" + std::to_string(thread) + "/stat";
  const std::string_view stat = read_small(directory, name.c_str(), room);
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string_view::npos ? std::string_view() : stat.substr(name_end + 2);
}

/// Clock ticks that the thread has computed outside of the kernel.
std::uint64_t computed(std::string_view facts) {
  constexpr int kBefore = 11;  // fields
  for (int i = 0; i < kBefore; ++i)
    facts = facts.substr(std::min(facts.find(' '), facts.size() - 1) + 1);
  std::uint64_t ticks = 0;
  std::from_chars(facts.data(), facts.data() + facts.size(), ticks);
  return ticks;
}

UniqueFd open_directory_of(pid_t thread) {
  return UniqueFd(::open(process_directory(thread).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::uint64_t computed_by(pid_t thread) {
  std::array<char, 512> room;
  const UniqueFd directory = open_directory_of(thread);
  const auto facts = directory.valid() ? thread_facts(directory.get(), thread, room) : "";
  return facts.empty() ? 0 : computed(facts);
}

/// Whether a thread is known to be out of the call in which it was let go on: it has ended, waits
/// in another call, or has computed since. Of one that runs the kernel doesn't say where it is,
/// proc_pid_syscall(5).
bool has_come_back(pid_t thread, std::uint64_t computed_then) {
  constexpr std::uint64_t kTicks = 2;  // the kernel's estimate can be one too many
  const UniqueFd directory = open_directory_of(thread);
  if (!directory.valid()) return errno == ENOENT;
  std::array<char, 512> room;
  const std::string_view facts = thread_facts(directory.get(), thread, room);
  if (facts.empty()) return false;
  if (facts[0] == 'Z' || facts[0] == 'X') return true;  // nobody may look at what it did last
  if (computed(facts) >= computed_then + kTicks) return true;
  const std::string_view call = read_small(directory.get(), "syscall", room);
  long number = 0;
  const auto [end, error] = std::from_chars(call.data(), call.data() + call.size(), number);
  return error == std::errc() && !makes_task(number);
}

}  // namespace

TaskLimit TaskLimit::of_call(pid_t holder, std::uint64_t most) {
  TaskLimit limit(holder, most);
  limit.shared_holder_ = holder;
  return limit;
}

std::optional<int> TaskLimit::ask(pid_t thread) {
  if (most_ == 0) return std::nullopt;
  makers_.erase(thread);
  if (left_ == 0) count();
  // Its maker mostly comes back at once.
  constexpr int kLooks = 30;
  for (int i = 0; i < kLooks && left_ == 0 && there_ < most_; ++i) {
    sys::sleep_1ms();
    count();
  }
  if (left_ == 0) return EAGAIN;
  --left_;
  ++allowed_;
  makers_.emplace(thread, computed_by(thread));
  return std::nullopt;
}

/// The filter has refused what it refuses of their arguments: all are registers, but those of
/// clone3, which only a policy allows that lets it do anything.
std::vector<Note> TaskLimit::notes() {
  std::vector<Note> notes;
  for (const int number : kNumbers)
    notes.push_back({.number = number,
                     .look = {},
                     .answer = [this](const NotedCall&, const CallerMemory& memory) {
                       return ask(static_cast<pid_t>(memory.thread()));
                     }});
  return notes;
}

/// Who has come back is asked first: what it made is there when the tasks are listed. Of those that
/// were allowed all that are new are seen, and at most one for each maker is not.
void TaskLimit::count() {
  std::erase_if(makers_,
                [](const auto& maker) { return has_come_back(maker.first, maker.second); });
  Seen seen;
  // Twice, for those that move up in the tree meanwhile.
  look(seen);
  look(seen);
  there_ = 0;
  std::uint64_t fresh = 0;
  for (const auto& [number, tasks] : seen) {
    const auto before = seen_.find(number);
    const std::uint64_t known = before == seen_.end() ? 0 : before->second;
    there_ += tasks;
    fresh += tasks - std::min(tasks, known);
  }
  seen_ = std::move(seen);
  if (shared_holder_ != 0) fresh = 0;  // whose they are is not known
  allowed_ = std::min<std::uint64_t>(allowed_ - std::min(allowed_, fresh), makers_.size());
  left_ = most_ - std::min(most_, there_ + allowed_);
  if (shared_holder_ != 0) left_ = std::min<std::uint64_t>(left_, 1);  // others take from it too
}

void TaskLimit::look(Seen& seen) {
  tasks_.refresh();
  for (const ProcessList::Process& each : tasks_.all()) {
    if (shared_holder_ != 0 && each.parent == shared_holder_) continue;
    std::uint64_t& tasks = seen[each.number];
    tasks = std::max(tasks, tasks_.tasks_of(each));
  }
}

}  // namespace sbx::supervise
