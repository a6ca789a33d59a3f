#include "plan/tier/landlock_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "plan/enforcement.hpp"
#include "plan/filter/outside.hpp"
#include "plan/tier/live.hpp"
#include "plan/tier/shared_memory.hpp"

namespace sbx::plan {

void note_landlock(const host::Host& host, Plan& plan) {
  constexpr const char* kWhy = "no namespaces here";
  const auto note = [&](Promise promise, std::string instead) {
    plan.degraded.push_back({.promise = promise, .why = kWhy, .instead = std::move(instead)});
  };
  const bool callers_own = plan.identity.callers_own;
  plan.weaker_isolation = fmt::format(
      "weaker isolation (landlock, {}): names of the machine's files and processes are visible; -v "
      "lists the rest",
      !callers_own    ? "own uid"
      : host.uid == 0 ? "same uid, root"
                      : "same uid");
  plan.notes.push_back(plan.weaker_isolation);
  note(Promise::isolation,
       callers_own
           ? "Landlock and the caller's own uid, in the machine's own namespaces; modes and "
             "times of files are changed by sbx, in the program's own directories, where no file "
             "gets a set-ID bit; extended attributes can't be used"
           : "Landlock and a uid of its own, in the machine's own namespaces; extended attributes "
             "can't be used");
  note(Promise::names,
       "whether a path exists, its size, times, owner and link target, and which processes exist, "
       "can be seen where permissions allow; contents, lists, arguments and environments can't, "
       "but those of /etc/passwd, /etc/group, /etc/hosts and /etc/hostname");
  if (std::ranges::any_of(plan.mounts,
                          [](const Mount& step) { return step.kind() == MountKind::copy; }))
    note(Promise::workspace_mode, "the program works on a copy in '" + plan.private_directory +
                                      "', made when the run began, and sees that path");
  note(Promise::own_tmp,
       "TMPDIR and HOME are in '" + plan.private_directory + "'; /tmp itself is refused");
  if (plan.network.closed)
    note(Promise::network_mode, "no internet socket can be made, loopback included");
  note(Promise::own_ipc, std::string(plan.names_sockets ? kNoOtherSockets : kNoNamedSockets) +
                             ", System V IPC, message queues and inotify are refused");
  note(Promise::own_proc,
       "a few files of the machine's /proc can be read and the numbers of its processes probed; "
       "ps, top and /proc/self don't work");
  note(Promise::host_name, "the program sees the machine's host name");
  note(Promise::disk,
       "it is measured while the program runs, so that it can be over for a moment; files without "
       "a name are not counted");
  note_shared_memory(host, plan);
  note_live(plan);
  if (callers_own && plan.budgets.processes > 0) note(Promise::processes, kCountsTasks);
  note(Promise::own_end,
       fmt::format("if sbx, its keeper and the keeper's second are killed or stopped at the same "
                   "moment, by {}root, processes may stay",
                   callers_own ? "other processes of the caller's uid or by " : ""));
  if (const auto calls = allowed_in_vain(plan.filter); !calls.empty())
    note(Promise::allowed_calls, fmt::format("refused all the same: {}", fmt::join(calls, ", ")));
  if (host.landlock_abi < kLandlockScopes)
    plan.degraded.push_back(
        {.promise = Promise::landlock,
         .why = fmt::format("this kernel's Landlock has no scopes (ABI {}, they came with {})",
                            host.landlock_abi, kLandlockScopes),
         .instead = std::string("signals are kept in by the uid alone") +
                    (plan.filter.context.truncates_unasked
                         ? "; truncate(2) and opening with O_TRUNC only to read are refused"
                         : "")});
  note_memory(plan);
}

}  // namespace sbx::plan
