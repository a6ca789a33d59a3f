#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "../unit/canned_host.hpp"
#include "plan/make_plan.hpp"
#include "policy/load.hpp"
#include "spawn/pack.hpp"

/// The computation of a start before it has any effect: policy, plan, filter, the child's program;
/// on a host that exists only in memory.
namespace sbx::bench {

inline policy::LoadContext context() {
  return {.home = "/home/me", .working_directory = "/home/me/project"};
}

inline policy::Policy load(const std::vector<policy::Override>& overrides = {}) {
  auto policy = policy::load({{"default"}}, overrides, context());
  if (!policy) std::abort();
  return std::move(*policy);
}

inline plan::RunRequest request() {
  plan::RunRequest asked;
  asked.operands = {"true"};
  return asked;
}

inline plan::Plan decide(const policy::Policy& policy, const host::Host& host) {
  auto plan = plan::make_plan(policy, host, request());
  if (!plan) std::abort();
  return std::move(*plan);
}

inline spawn::Block pack(const plan::Plan& plan) {
  const spawn::NetworkRequest network;
  const std::vector<spawn::Source> sources(plan.mounts.size());
  return spawn::pack(plan, {.network = network, .sources = sources});
}

/// All of it, once.
inline std::size_t start(const host::Host& host) {
  const policy::Policy policy = load();
  const plan::Plan plan = decide(policy, host);
  return pack(plan).bytes().size();
}

}  // namespace sbx::bench
