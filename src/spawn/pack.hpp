#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "spawn/child_program.hpp"
#include "spawn/network.hpp"
#include "spawn/sources.hpp"

/// A Plan as the flat data that the child uses. Owns everything that the Program points to, except the plan's own
/// strings.
namespace sbx::spawn {

struct Packed {
  child::Program program{};
  std::vector<child::Step> steps;
  std::vector<child::Veil> veils;
  std::vector<child::Limit> limits;
  std::vector<child::LandlockRule> landlock_rules;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<sock_filter> filter;
  std::string scratch_size;
  std::string scratch_inodes;
  cpu_set_t affinity{};
};

/// The plan, the request and the sources must outlive the result. spawn fills in channels and ids.
void pack(const plan::Plan& plan, const NetworkRequest& network, const std::vector<Source>& sources,
          Packed& packed);

}  // namespace sbx::spawn
