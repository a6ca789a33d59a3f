#pragma once

#include <sys/types.h>
#include <time.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "plan/deny.hpp"
#include "plan/plan.hpp"
#include "workspace/upper_folder.hpp"

/// What a run wrote into its private workspace. The folders lie on the run's private tmpfs, which
/// the descriptors keep alive; to be read when PID 1 is dead and nobody can change it any more.
namespace sbx::workspace {

/// One writable layer and the folder of the host below it.
struct Layer {
  UniqueFd upper;
  UniqueFd lower;      ///< invalid: an empty workspace, everything in it is new
  UniqueFd veil;       ///< what hid parts of `lower` from the program; invalid: nothing did
  std::string source;  ///< of `lower`, on the host
  std::string prefix;  ///< of its root below the workspace; "." for the workspace itself
  std::vector<std::string>
      mounted;  ///< names in it that sbx made to mount on, no work of the program
};

struct Copy {
  UpperFolder over;  ///< holds the layers where the tmpfs can't; outlives what is open in it
  std::string folder;  ///< the workspace, on the host
  std::vector<Layer> layers;
  timespec
      started{};  ///< on the clock by which file systems stamp: what changed later is a conflict
  bool is_overlay = false;
  std::unique_ptr<plan::Denials> hidden;  ///< filesystem.deny; never null when there are layers

  [[nodiscard]] bool empty() const { return layers.empty(); }
};

/// A layer and a path in it.
struct Place {
  const Layer* layer = nullptr;
  std::string path;
};
/// The layer that holds a path below the workspace.
[[nodiscard]] Place place_of(const Copy& copy, const std::string& path);

/// True when the plan's workspace is private and writable: something can be brought out of it.
[[nodiscard]] bool has_copy(const plan::Plan& plan);
[[nodiscard]] bool has_overlay(const plan::Plan& plan);

/// Opens what is left of a run in its private tmpfs, and in `over` where there is one. No layers
/// when the workspace is none of the run's own. Errors: host.
[[nodiscard]] Result<Copy> open_copy(const plan::Plan& plan, int scratch, UpperFolder over,
                                     timespec started);

/// The clock of Copy::started, now.
[[nodiscard]] timespec file_clock();

}  // namespace sbx::workspace
