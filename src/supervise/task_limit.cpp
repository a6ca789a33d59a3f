#include "supervise/task_limit.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/sys.hpp"
#include "base/unique_fd.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

constexpr bool makes_task(long number) {
#if defined(__x86_64__)
  if (number == SYS_fork || number == SYS_vfork) return true;
#endif
  return number == SYS_clone;
}

/// Whether a thread is known to be out of the call in which it was let go on: it has ended, or
/// waits in another call. Of one that runs the kernel doesn't say where, proc_pid_syscall(5).
bool has_come_back(pid_t thread) {
  const UniqueFd directory(
      ::open(process_directory(thread).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return errno == ENOENT;
  std::array<char, 256> room;
  const std::string_view stat = read_small(directory.get(), "stat", room);
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size()) return false;
  const char state = stat[name_end + 2];
  if (state == 'Z' || state == 'X') return true;  // nobody may look at what it did last
  const std::string_view call = read_small(directory.get(), "syscall", room);
  long number = 0;
  const auto [end, error] = std::from_chars(call.data(), call.data() + call.size(), number);
  return error == std::errc() && !makes_task(number);
}

}  // namespace

std::optional<int> TaskLimit::ask(pid_t thread) {
  if (most_ == 0) return std::nullopt;
  makers_.erase(thread);
  if (left_ == 0) count();
  // Its maker mostly comes back at once.
  constexpr int kLooks = 10;
  for (int i = 0; i < kLooks && left_ == 0 && there_ < most_; ++i) {
    sys::sleep_1ms();
    count();
  }
  if (left_ == 0) return EAGAIN;
  --left_;
  ++allowed_;
  makers_.insert(thread);
  return std::nullopt;
}

/// Who has come back is asked first: what it made is there when the tasks are listed. Of those that
/// were allowed all that are new are seen, and at most one for each maker is not.
void TaskLimit::count() {
  std::erase_if(makers_, has_come_back);
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
  allowed_ = std::min<std::uint64_t>(allowed_ - std::min(allowed_, fresh), makers_.size());
  left_ = most_ - std::min(most_, there_ + allowed_);
}

void TaskLimit::look(Seen& seen) {
  tasks_.refresh();
  for (const ProcessList::Process& each : tasks_.all()) {
    std::uint64_t& tasks = seen[each.number];
    tasks = std::max(tasks, tasks_.tasks_of(each));
  }
}

}  // namespace sbx::supervise
