#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

/// The processes of one sandbox without PID 1, for frequent polling. Opening a file of /proc costs
/// five times as much as reading it, so each process's files stay open until it ends.
class ProcessList {
 public:
  struct Process {
    pid_t number = 0;
    pid_t parent = 0;       ///< when it was listed; 0: unknown
    std::string directory;  ///< below proc(): "17", or "/proc/17"
    UniqueFd statm;
    UniqueFd task;
    UniqueFd children;  ///< children of its first thread
    /// The thread that holds its memory, as of statm(): the first one, or another if that has
    /// exited. 0: none.
    pid_t holder = 0;
  };

  /// `processes`: a borrowed procfs of the sandbox, or -1 to find them from PID 1 in the host's
  /// /proc.
  ProcessList(pid_t pid1, int processes);
  /// The processes below another one, by its number in that procfs.
  static ProcessList below(pid_t top, int processes);

  /// Re-reads the list of live processes.
  void refresh();
  /// The same, but processes that have ended may stay listed: while no process starts, it re-reads
  /// less often the more that costs.
  void add_new();
  /// True if any task, here or elsewhere, is known to have started since `mark` was last set;
  /// updates `mark`. Costs one read(2). A parent can hide one start from it, so rescan periodically
  /// anyway.
  [[nodiscard]] bool started_since(std::string& mark);
  /// As of the last refresh, by number; each may have ended.
  [[nodiscard]] std::vector<Process>& all() { return all_; }
  [[nodiscard]] int proc() const;
  [[nodiscard]] const std::string& directory_of_pid1() const { return pid1_.directory; }
  /// Whether numbers and names are those of the caller's /proc, so that system calls take them.
  [[nodiscard]] bool is_of_host() const { return processes_ < 0; }
  /// Whether PID 1 and its children can be seen: else nothing would be counted.
  [[nodiscard]] bool sees_pid1() const;
  /// Contents of /proc/PID/statm, valid until the next call; empty if no thread of the process is
  /// left. If the first thread has ended before the others (pthread_exit(3) in main), its file
  /// shows 0, and another thread's is read.
  [[nodiscard]] std::string_view statm(Process& process);
  /// The directory, below proc(), with the process's memory figures; as of statm().
  [[nodiscard]] static std::string memory_directory(const Process& process);
  /// Its comm, without control characters; empty if it has ended.
  [[nodiscard]] std::string name(const Process& process) const;
  /// The present threads, or children of all threads, of a process, by number; empty if it has
  /// ended. It need not be one of all().
  [[nodiscard]] std::vector<pid_t> threads_of(Process& process);
  [[nodiscard]] std::vector<pid_t> children_of(Process& process);
  [[nodiscard]] std::vector<pid_t> children_of_pid1();
  /// The number of tasks, including threads: of one process (a zombie counts too), and of all.
  [[nodiscard]] std::uint64_t tasks_of(const Process& process) const;
  [[nodiscard]] std::uint64_t tasks() const;

 private:
  ProcessList(pid_t pid1, int processes, bool lists_tree, std::string directory);
  [[nodiscard]] std::string directory_of(pid_t number) const;
  struct Child {
    pid_t number = 0;
    pid_t parent = 0;
  };
  void list_procfs();
  void list_tree();
  void add_children(Process& parent, std::vector<Child>& found);
  void add_adopted(std::vector<Child>& found);
  [[nodiscard]] std::vector<pid_t> list_threads(Process& process);
  [[nodiscard]] std::string_view statm_of_first(Process& process);
  void add_listed(UniqueFd& file, int at, const std::string& path, std::vector<pid_t>& children);
  [[nodiscard]] std::string_view read_kept(UniqueFd& file, int at, const std::string& path,
                                           std::span<char> room, std::size_t offset);
  [[nodiscard]] std::string_view last_started();
  void count_kept();

  Process pid1_;
  int processes_;
  bool lists_tree_;
  std::size_t most_kept_;  ///< descriptors
  std::size_t kept_ = 0;
  std::int64_t first_ = 0;  ///< offset of PID 1 in the procfs
  std::vector<Process> all_;
  std::array<char, 128> room_{};
  UniqueFd load_;
  std::string listed_;  ///< started_since() mark of the last add_new()
  std::uint64_t listed_at_ = 0;
  std::uint64_t listing_cost_ = 0;  ///< microseconds
};

/// The process with the most memory.
struct Largest {
  std::string name;         ///< its comm, without control characters; empty: unknown
  std::uint64_t bytes = 0;  ///< resident
};

/// The largest of the processes as listed.
[[nodiscard]] Largest largest_process(ProcessList& processes);
/// Resident bytes of all that are listed; shared pages count for each.
[[nodiscard]] std::uint64_t resident_sum(ProcessList& processes);

}  // namespace sbx::supervise
