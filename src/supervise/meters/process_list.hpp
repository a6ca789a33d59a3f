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

/// The processes of one sandbox without PID 1, for whoever looks at them often: what was opened for
/// a process stays open until it ends, because to open a file of /proc costs five times what reading it does.
class ProcessList {
 public:
  struct Process {
    pid_t number = 0;
    pid_t parent = 0;    ///< when it was listed; 0: not known
    std::string folder;  ///< below proc(): "17", or "/proc/17"
    UniqueFd statm;
    UniqueFd task;
    UniqueFd children;  ///< of its first thread
    /// Who has its memory, as of statm(): its first thread, or another where that has left. 0: nobody.
    pid_t holder = 0;
  };

  /// `processes`: a borrowed procfs of the sandbox, or -1: then they are found from PID 1 in the
  /// host's /proc.
  ProcessList(pid_t pid1, int processes);

  /// Who is there now.
  void refresh();
  /// The same, but who has ended may still be listed: less often the more it costs while no process
  /// starts.
  void add_new();
  /// Whether any task is known to have started, here or elsewhere, since `mark` was last given; marks
  /// that. Costs one read(2). A parent can hide one start from it: no reason not to look for ever.
  [[nodiscard]] bool started_since(std::string& mark);
  /// As of then, by number; each may be gone.
  [[nodiscard]] std::vector<Process>& all() { return all_; }
  [[nodiscard]] int proc() const;
  /// Content of /proc/PID/statm, until the next call; empty when no thread of the process is left.
  /// That of its first thread, which says nothing any more when that one has ended before the others
  /// (pthread_exit(3) in main), is then another's.
  [[nodiscard]] std::string_view statm(Process& process);
  /// Where /proc tells of the process's memory, below proc(): as of statm().
  [[nodiscard]] static std::string memory_folder(const Process& process);
  /// Its comm, without control characters; empty when it is gone.
  [[nodiscard]] std::string name(const Process& process) const;
  /// What a process has now, by number; empty when it is gone. The children are those of all its
  /// threads. It need not be one of all().
  [[nodiscard]] std::vector<pid_t> threads_of(Process& process);
  [[nodiscard]] std::vector<pid_t> children_of(Process& process);
  /// How many tasks they have, threads counted.
  [[nodiscard]] std::uint64_t tasks() const;

 private:
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
  [[nodiscard]] std::vector<pid_t> children_of_pid1();
  void add_listed(UniqueFd& file, int at, const std::string& path, std::vector<pid_t>& children);
  [[nodiscard]] std::string_view read_kept(UniqueFd& file, int at, const std::string& path,
                                           std::span<char> room, std::size_t offset);
  [[nodiscard]] std::string_view last_started();
  void count_kept();

  Process pid1_;
  int processes_;
  std::size_t most_kept_;  ///< descriptors
  std::size_t kept_ = 0;
  std::int64_t first_ = 0;  ///< place of PID 1 in the procfs
  std::vector<Process> all_;
  std::array<char, 128> room_{};
  UniqueFd load_;
  std::string listed_;  ///< mark of the last add_new()
  std::uint64_t listed_at_ = 0;
  std::uint64_t listing_cost_ = 0;  ///< microseconds
};

}  // namespace sbx::supervise
