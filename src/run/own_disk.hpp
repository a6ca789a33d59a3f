#pragma once

#include <time.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/copied.hpp"
#include "plan/plan.hpp"
#include "spawn/spawn.hpp"
#include "workspace/copy.hpp"
#include "workspace/duplicate.hpp"
#include "workspace/shared_memory.hpp"

namespace sbx::run {

/// The private disk of one sandbox if it is not a tmpfs, and the copies on it.
class OwnDisk {
 public:
  /// Errors: setup, some with a way to retry. `state`: host::state_directory().
  /// `plan`, `identity` and `hears`, of the copies, are borrowed until the sandbox stands;
  /// `is_cancelled`: as fill_copies().
  [[nodiscard]] Status prepare(const plan::Plan& plan, const spawn::MappedIdentity& identity,
                               const std::string& state, const Copied& hears,
                               std::function<bool()> is_cancelled = {});
  [[nodiscard]] const spawn::Disk& disk() const { return disk_; }
  /// Gives the files of a private directory to the supervisor; invalid where there is none.
  [[nodiscard]] UniqueFd take_files() { return std::move(files_); }
  /// The machine's /dev/shm, if it is lent; not taken in other sandboxes.
  [[nodiscard]] workspace::SharedMemory& memory() { return memory_; }
  /// What could not be copied.
  void tell(std::vector<Degraded>& degraded) const;
  /// Tells `copy` what was copied into its layers, and when the copies were complete.
  void describe(workspace::Copy& copy) const;
  /// `copy` has the disk then.
  void hand_to(workspace::Copy& copy);

 private:
  Status make_private(const plan::Plan& plan, const spawn::MappedIdentity& identity,
                      const Copied& hears);

  workspace::SharedMemory memory_;
  UniqueFd files_;
  std::unique_ptr<workspace::DiskDirectory> directory_;
  spawn::DiskPlace place_;
  spawn::Disk disk_;
  workspace::CopiedTrees copied_;
  std::vector<workspace::Left> left_;
  std::function<bool()> is_cancelled_;
  timespec filled_{};
};

}  // namespace sbx::run
