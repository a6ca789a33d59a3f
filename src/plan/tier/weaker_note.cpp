#include "plan/tier/weaker_note.hpp"

#include <algorithm>

namespace sbx::plan {

void add_to_weaker_note(const std::string& more, Plan& plan) {
  const std::string before = plan.weaker_isolation;
  plan.weaker_isolation += "; " + more;
  std::ranges::replace(plan.notes, before, plan.weaker_isolation);
}

}  // namespace sbx::plan
