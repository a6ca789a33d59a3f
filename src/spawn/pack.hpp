#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "spawn/block.hpp"
#include "spawn/child_program.hpp"
#include "spawn/identity.hpp"
#include "spawn/network.hpp"
#include "spawn/sources.hpp"

/// A Plan as the flat bytes that the child runs on.
namespace sbx::spawn {

/// A directory of the host that serves as the private disk instead of a tmpfs: empty, and writable
/// for the sandbox's uid.
struct DiskPlace {
  std::string path;  ///< canonical
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// What a program needs to know beside the plan.
struct PackRequest {
  child::Role role = child::Role::run;
  const NetworkRequest& network;
  const std::vector<Source>& sources;        ///< one per mount of the plan
  const DiskPlace* disk = nullptr;           ///< null: a tmpfs
  const MappedIdentity* identity = nullptr;  ///< where a keeper needs its ids
  bool waits_for_copies = false;
  bool list_processes = false;
  winsize window{};
};

/// The block begins with the Program. Nothing in it refers to the plan or the request.
[[nodiscard]] Block pack(const plan::Plan& plan, const PackRequest& request);

/// Finds the program in a block made by pack().
[[nodiscard]] const child::Program& program_of(const Block& block);

}  // namespace sbx::spawn
