#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "canned_host.hpp"
#include "plan/make_plan.hpp"
#include "policy/load.hpp"

namespace sbx::plan {

/// The policy `default` with values set on the command line: {"filesystem.read", "[\"/srv\"]"}.
inline policy::Policy policy_with(
    std::initializer_list<std::pair<const char*, const char*>> settings) {
  std::vector<policy::Override> overrides;
  for (const auto& [key, toml] : settings)
    overrides.push_back({.key = key, .toml = toml, .option = "--set"});
  auto policy = policy::load({{"default"}}, overrides,
                             {.home = "/home/me", .working_directory = "/home/me/project"});
  if (!policy) {
    ADD_FAILURE() << policy.error().front().text();
    return {};
  }
  return std::move(*policy);
}

inline RunRequest request(std::vector<std::string> operands) {
  RunRequest asked;
  asked.operands = std::move(operands);
  return asked;
}

/// Decides one run on a canned host.
class PlanTest : public testing::Test {
 protected:
  host::CannedHost canned;
  policy::Policy policy = policy_with({});

  void set(const char* key, const char* toml) { policy = policy_with({{key, toml}}); }

  Result<Plan> decide(RunRequest asked) { return make_plan(policy, canned.host, asked); }
  Result<Plan> decide(std::vector<std::string> operands = {"true"}) {
    return decide(request(std::move(operands)));
  }
  Plan plan(RunRequest asked) {
    auto decided = decide(std::move(asked));
    EXPECT_TRUE(decided.has_value()) << decided.error().text();
    return decided ? std::move(*decided) : Plan();
  }
  Plan plan(std::vector<std::string> operands = {"true"}) {
    return plan(request(std::move(operands)));
  }
  Error error(RunRequest asked) {
    auto decided = decide(std::move(asked));
    EXPECT_FALSE(decided.has_value());
    return decided ? Error() : std::move(decided.error());
  }
  Error error(std::vector<std::string> operands = {"true"}) {
    return error(request(std::move(operands)));
  }
};

/// The last step for a target; null if there is none.
inline const Mount* step_at(const Plan& plan, std::string_view target) {
  const auto found = std::find_if(plan.mounts.rbegin(), plan.mounts.rend(),
                                  [&](const Mount& step) { return step.target == target; });
  return found == plan.mounts.rend() ? nullptr : &*found;
}

/// Text of a file that the plan makes or covers with; "(none)" where the step is of another kind.
inline std::string content_of(const Mount& step) {
  if (const auto* file = step.as<mount::File>()) return file->content;
  return "(none)";
}

inline bool is_recursive(const Mount& step) {
  const auto* bind = step.as<mount::Bind>();
  return bind != nullptr && bind->recursive;
}

inline bool needs_idmap(const Mount& step) {
  const HostSource* source = step.host_source();
  return source != nullptr && source->needs_idmap;
}

inline std::ptrdiff_t position_of(const Plan& plan, std::string_view target) {
  return step_at(plan, target) - plan.mounts.data();
}

inline std::string variable(const Plan& plan, const std::string& name) {
  for (const std::string& entry : plan.environment)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "(unset)";
}

inline bool is_degraded(const Plan& plan, std::string_view what) {
  return std::ranges::any_of(plan.degraded,
                             [&](const Degraded& each) { return each.what() == what; });
}

/// Matches a step of a kind for a target.
MATCHER_P2(HasStep, kind, target, "has such a step") {
  const Mount* step = step_at(arg, target);
  return step != nullptr && step->kind() == kind;
}

}  // namespace sbx::plan
