#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "supervise/meters/process_list.hpp"
#include "supervise/settings.hpp"

namespace sbx::supervise {

/// limits.processes where no limit of the kernel's counts the sandbox's tasks apart: every thread
/// asks before it makes a process or thread (fork, vfork and clone are notified, and clone3 where
/// the policy allows it).
///
/// A task that was allowed begins only when its maker runs. Until it is seen, or its maker is known
/// to have come back, it counts as if it were there: there are not more than `most`, unless a
/// program makes reapers of its own, PR_SET_CHILD_SUBREAPER, and ends them while the tasks are
/// listed. In doubt one is refused that would have been the last.
class TaskLimit {
 public:
  /// Counts what is below `keeper`. `most` = 0: any number.
  TaskLimit(pid_t keeper, std::uint64_t most) : tasks_(keeper, -1), most_(most) {}
  /// For one call of a session: counts what all calls have below the session's holder, but for
  /// their inits, which are sbx's own. The others have limits of their own: what those have allowed
  /// and has not begun is not known here, so there can be one more for each of them.
  [[nodiscard]] static TaskLimit of_call(pid_t holder, std::uint64_t most);
  /// For a thread that waits in such a call, by number: nothing, it goes on; or the errno.
  [[nodiscard]] std::optional<int> ask(pid_t thread);
  /// One for each call of plan::served_tasks(). They refer to this object.
  [[nodiscard]] std::vector<Note> notes();

 private:
  /// Processes by number, each with its number of tasks.
  using Seen = std::map<pid_t, std::uint64_t>;
  void count();
  void look(Seen& seen);

  ProcessList tasks_;
  std::uint64_t most_;
  pid_t shared_holder_ = 0;    ///< of a session, 0: the limit is that of one run
  std::uint64_t left_ = 0;     ///< tasks that may begin before the next count
  std::uint64_t there_ = 0;    ///< tasks at the last count
  std::uint64_t allowed_ = 0;  ///< since the last count, and before it those that it missed
  /// Threads that were allowed one and may not have come back, with what they had computed then.
  std::map<pid_t, std::uint64_t> makers_;
  Seen seen_;  ///< at the last count
};

}  // namespace sbx::supervise
