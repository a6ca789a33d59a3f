#include "plan/tier/outer_proc.hpp"

#include <algorithm>

#include "plan/files/reach.hpp"

namespace sbx::plan {

Status show_outer_proc(Plan& plan) {
  // What sbx hides in a procfs of its own needs no masks: nothing of this one may be opened.
  std::erase_if(plan.mounts, [](const Mount& step) { return step.target.starts_with("/proc/"); });
  for (Mount& step : plan.mounts)
    if (step.kind() == MountKind::proc)
      step = {.target = step.target, .payload = mount::OuterProc{}, .rights = {.execute = false}};
  plan.access = reached_through(plan.mounts);
  FilterContext context = plan.filter.context;
  context.shows_outer_proc = true;
  plan.filter = SBX_TRY(compile_filter(plan.filter.syscalls, context));
  plan.degraded.push_back(
      {.promise = Promise::own_proc,
       .why = "parts of the caller's /proc are hidden, as in a container: the kernel refuses a "
              "fresh one",
       .instead = "a few files of the caller's /proc can be read, and its names and the numbers of "
                  "its processes probed; ps, top, /proc/self, a list of /, inotify and fanotify "
                  "don't work"});
  return {};
}

}  // namespace sbx::plan
