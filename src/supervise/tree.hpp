#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/control.hpp"
#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/tree_counters.hpp"
#include "base/unique_fd.hpp"

/// The processes of a sandbox, or of one call in it: the one place that kills, stops and reaps
/// them, and that says which of their budgets are their own. A call differs from a run here and
/// nowhere else.
namespace sbx::supervise {

class Tree {
 public:
  /// The owner keeps them open.
  struct Handles {
    pid_t pid = -1;                 ///< PID 1, in the caller's PID namespace
    int pid1 = -1;                  ///< its pidfd
    int control = -1;               ///< to PID 1, base/control.hpp
    int processes = -1;             ///< a procfs of the sandbox; -1: the host's shows its processes
    TreeCounters* group = nullptr;  ///< its control group, if it has one
    /// Without a PID namespace: the ids of the program, which may look into its processes, and the
    /// uid of their keeper. 0: there is one.
    uid_t uid = 0;
    gid_t gid = 0;
    uid_t keeper = 0;
  };

  explicit Tree(Handles handles) : handles_(handles) {}
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  virtual ~Tree() = default;
  [[nodiscard]] const Handles& handles() const { return handles_; }

  // ---- its end ----

  /// Calls `ended` once when every process has ended, unless a report on the control socket tells
  /// that (a call). Errors: internal (epoll).
  [[nodiscard]] virtual Status watch(EventLoop& loop, std::function<void()> ended);
  /// Watches no longer: before the loop is gone.
  void leave();
  /// Waits for the end and collects PID 1. Nothing where somebody else collects it, and reports
  /// what was used.
  virtual std::optional<control::Used> reap();
  /// What was used if the control socket ended before such a report. Nothing where the pidfd tells
  /// the end.
  [[nodiscard]] virtual std::optional<control::Used> lost() const { return std::nullopt; }

  // ---- killing and stopping ----

  /// Every process. May be called when all have ended.
  virtual void kill();
  /// Fails only where PID 1 is dead; its end is told as ever.
  bool order(control::FromSupervisor what, int value = 0) const;
  /// Asks every process to stop. True: the control group does it, and has_stopped() tells when;
  /// false: PID 1 does it, and reports `stopped`. A process in the middle of a system call stops
  /// when that is over.
  bool stop();
  [[nodiscard]] bool has_stopped() const { return handles_.group->is_frozen(); }
  /// Wakes them, also what another process stopped through its copy of this. What had stopped by
  /// itself before stays stopped if the group stopped the tree.
  void wake();
  /// The process that supervises is stopped with the tree, as a shell expects.
  [[nodiscard]] virtual bool takes_supervisor_along() const { return true; }

  // ---- budgets ----

  /// Memory, disk and processes are counted together with others', by somebody else.
  [[nodiscard]] virtual bool shares_budgets() const { return false; }
  /// It ends with the first budget that is spent.
  [[nodiscard]] virtual bool ends_with_budget() const { return true; }
  /// PID 1 as `processes` shows it, if its children are inits of calls, which are sbx's own; else
  /// 0.
  [[nodiscard]] virtual pid_t holder() const { return 0; }

 protected:
  /// The control group stops every process; false where it can't.
  bool freeze();

  EventLoop* loop_ = nullptr;  ///< watched in; null: it is not
  int watched_ = -1;           ///< a pidfd: PID 1's, or that of what outlives it

 private:
  const Handles handles_;
  bool frozen_ = false;
};

/// Without a PID namespace PID 1 is a keeper. The supervisor is the reaper of what that leaves, so
/// make_reaper() comes before the clone.
class KeptTree : public Tree {
 public:
  using Tree::Tree;
  /// Errors: host (prctl).
  [[nodiscard]] static Status make_reaper();
  /// This process's children, by number.
  [[nodiscard]] static std::vector<pid_t> own_children();
  /// Where no sandbox came of a clone: waits for what the clone has left. The keeper's second ends
  /// when it sees that the keeper has ended. Its name tells it from an orphan of the caller, which
  /// can become a child of this process meanwhile and live as long as it likes.
  static void wait_for_rest(const std::vector<pid_t>& others);

  [[nodiscard]] Status watch(EventLoop& loop, std::function<void()> ended) override;
  std::optional<control::Used> reap() override;

 private:
  void finish(EventLoop& loop, const std::function<void()>& ended);
  /// Reaps what has ended, and ends what is left; true when nothing is.
  virtual bool collect() = 0;
  /// A child that was left when collect() looked, and that nobody else reaps; 0: none is known.
  [[nodiscard]] virtual pid_t awaited() const { return 0; }

  std::optional<control::Used> used_;  ///< of the keeper, when it was reaped
  bool all_gone_ = false;
  pid_t last_child_ = 0;  ///< that was awaited
  UniqueFd last_;         ///< its pidfd
  EventLoop::TimerId again_ = EventLoop::kNoTimer;
};

/// The sandbox's processes are those of one uid, which nothing else has.
class UidTree final : public KeptTree {
 public:
  using KeptTree::KeptTree;
  void kill() override;

 private:
  bool collect() override;
  [[nodiscard]] pid_t awaited() const override { return second_.value_or(0); }
  /// The keeper's second, which is a child of this process; 0: it has ended.
  [[nodiscard]] pid_t find_second() const;

  std::optional<pid_t> second_;  ///< when the keeper had ended
};

/// They have the caller's uid, and their keeper ends them: all that is in its domain of Landlock.
/// Where somebody has killed that, its second does so, and both are killed only from outside.
class DomainTree final : public KeptTree {
 public:
  /// `others`: children that this process had before the sandbox (own_children()).
  DomainTree(Handles handles, std::vector<pid_t> others)
      : KeptTree(handles), others_(std::move(others)) {}
  void kill() override;

 private:
  bool collect() override;
  [[nodiscard]] pid_t awaited() const override { return awaited_; }
  /// Children that are none of the others, when those that have ended are reaped.
  [[nodiscard]] std::vector<pid_t> left() const;

  std::vector<pid_t> others_;
  pid_t awaited_ = 0;
  unsigned looks_ = 0;
};

/// Where the kernel asks who looks at a process of the program, what is done meanwhile is done with
/// its ids: root of a container mostly lacks CAP_SYS_PTRACE. setfsuid(2)
class LookingAs {
 public:
  explicit LookingAs(const Tree::Handles& handles);
  LookingAs(const LookingAs&) = delete;
  LookingAs& operator=(const LookingAs&) = delete;
  ~LookingAs();

 private:
  const bool changes_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
};

/// A held sandbox: PID 1's children are the inits of calls.
class HeldTree final : public Tree {
 public:
  using Tree::Tree;
  /// Only PID 1, and with it all: the group has room for more than the sandbox.
  void kill() override;
  [[nodiscard]] bool ends_with_budget() const override { return false; }
  [[nodiscard]] pid_t holder() const override;

  /// Stops every process of every call, and returns when all have stopped. Errors: host, also
  /// "calls-not-stopped" after 5 s. wake_all() follows in either case.
  [[nodiscard]] Status stop_and_wait();
  /// What had stopped by itself before stays stopped.
  void wake_all();

 private:
  [[nodiscard]] Status stop_by_signals(std::uint64_t until);

  std::vector<UniqueFd> were_stopped_;  ///< pidfds
};

/// A call in a held sandbox: PID 1 is not a child of this process. The holder collects it and
/// reports its end on `control`.
class CallTree final : public Tree {
 public:
  using Tree::Tree;
  [[nodiscard]] Status watch(EventLoop& loop, std::function<void()> ended) override;
  std::optional<control::Used> reap() override { return std::nullopt; }
  /// The session's sandbox was killed, and this call with it: what its processes used is not known.
  [[nodiscard]] std::optional<control::Used> lost() const override { return control::Used{}; }
  /// The client of a call stops itself; this process, which no shell waits for, can't.
  [[nodiscard]] bool takes_supervisor_along() const override { return false; }
  [[nodiscard]] bool shares_budgets() const override { return true; }
};

}  // namespace sbx::supervise
