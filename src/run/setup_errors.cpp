#include "run/setup_errors.hpp"

#include <fmt/format.h>

#include "plan/plan.hpp"
#include "spawn/failure.hpp"
#include "spawn/faults.hpp"

namespace sbx::run {

Error no_namespaces(int errno_value) {
  return spawn::explain_clone_failure(errno_value);
}

Error no_private_mounts(int errno_value) {
  return spawn::explain_failure(
      {}, {.stage = child::Stage::private_mounts, .index = 0, .error = errno_value});
}

Error no_root(int errno_value) {
  return spawn::explain_failure({},
                                {.stage = child::Stage::pivot, .index = 0, .error = errno_value});
}

Error no_procfs(int errno_value) {
  plan::Plan plan;
  plan.mounts.push_back({.target = "/proc", .payload = plan::mount::Proc{}});
  return spawn::explain_failure(plan,
                                {.stage = child::Stage::proc, .index = 0, .error = errno_value});
}

std::string stage_table() {
  std::string text;
  for (const spawn::StageFacts& stage : spawn::stages())
    text += fmt::format("{}\t{}\t{}\n", stage.name, stage.kind, stage.meaning);
  return text;
}

}  // namespace sbx::run
