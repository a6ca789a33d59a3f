#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/copied.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "plan/files/deny.hpp"
#include "plan/plan.hpp"
#include "workspace/copied.hpp"
#include "workspace/disk.hpp"

/// What a run wrote into its private workspace. Its directories are on the run's private disk: a
/// tmpfs, which the descriptors keep alive, or a directory, which is removed with the Copy. Read it
/// after the end of PID 1, when no process can change it.
namespace sbx::workspace {

/// A file of the host as it was when changes to it were kept.
struct Noted {
  ino_t inode = 0;
  std::uint64_t bytes = 0;
  timespec modified{};
  timespec changed{};
  std::uint64_t links = 1;
  bool disturbed = false;  ///< it had changed already since the run began
};
using NotedFiles = std::unordered_map<std::string, Noted>;  ///< by path below the workspace

/// One writable layer and the directory of the host below it.
struct Layer {
  UniqueFd upper;
  UniqueFd lower;      ///< invalid: an empty workspace, everything in it is new
  UniqueFd veil;       ///< what hid parts of `lower` from the program; invalid: nothing did
  std::string source;  ///< of `lower`, on the host
  /// `upper` is a full copy of `lower`, and this is what was copied. Null: `upper` has only what
  /// was written.
  std::shared_ptr<const CopiedTree> copied;
  std::string prefix;  ///< of its root below the workspace; "." for the workspace itself
  /// names in it that sbx made, no work of the program: places to mount on, files copied in and
  /// left as they were
  std::vector<std::string> made;
  std::vector<plan::LinkedFile> linked;  ///< of an overlay: copied up when it was made
  std::vector<plan::FileId> unlinked;    ///< of `lower`: whose names did not stay those of one file
  std::shared_ptr<const plan::SeenTree> seen;  ///< of `lower`; null: not known
  /// Files that sbx wrote meanwhile, and what it removed, with inode 0; null: nothing.
  std::shared_ptr<const NotedFiles> applied;
  timespec linked_at{};  ///< files of `upper` with an older ctime are as they were copied; 0: none
  ino_t inode = 0;       ///< of a kept set: the inode that the lower directory must have
};

/// Changes that were kept: what was written lies apart, and what it was compared with was noted.
struct Stored {
  UniqueFd contents;
  std::unordered_map<std::string, std::string> content_of;  ///< by path: a name in `contents`
  NotedFiles before;                                        ///< what was not there is not
};

struct Copy {
  std::unique_ptr<DiskDirectory> disk;  ///< null: a tmpfs
  std::string directory;                ///< the workspace, on the host
  std::vector<Layer> layers;
  timespec
      started{};  ///< on the clock by which file systems stamp: what changed later is a conflict
  timespec filled{};  ///< when copies were complete, on the coarse clock; 0: there are none
  bool is_overlay = false;
  std::unique_ptr<plan::DenyRules> hidden;  ///< filesystem.deny; never null when there are layers
  std::unique_ptr<const Stored> stored;     ///< null: the layers' own upper directories
  Copied copied;                            ///< hears of what is copied out of it
  std::optional<Error> failure;             ///< why there are no layers, where there should be some

  [[nodiscard]] bool empty() const { return layers.empty(); }
};

/// A layer and a path in it.
struct LayerPath {
  const Layer* layer = nullptr;
  std::string path;
};
/// The layer that holds a path below the workspace.
[[nodiscard]] LayerPath place_of(const Copy& copy, const std::string& path);

/// What a created or modified file holds now, for reading. Errors: host.
[[nodiscard]] Result<UniqueFd> open_content(const Copy& copy, const Change& change);
/// Where a created or modified link leads now. Errors: host.
[[nodiscard]] Result<std::string> link_content(const Copy& copy, const Change& change);
/// A directory of the host as the program saw it at the start.
struct DirectorySeen {
  plan::FileId file;
  mode_t mode = 0;  ///< its permissions
};
/// The one under a path of the layer. None: there was none, or nobody knows.
[[nodiscard]] std::optional<DirectorySeen> directory_seen(const Layer& layer,
                                                          const std::string& path);
/// The directory that is on the host now is the one that the program saw, as far as is known, and
/// not one that was moved there or made since.
[[nodiscard]] bool is_as_seen(const Layer& layer, const std::string& path, const struct stat& now);
/// The program saw a directory there, and the host has another one now.
[[nodiscard]] bool is_other_directory(const Layer& layer, const std::string& path,
                                      const struct stat& now);
/// What sbx left under a path of the layer when it applied; null: nothing.
[[nodiscard]] const Noted* note_of(const Layer& layer, const std::string& path);
/// The host had something else than a directory there: at the start, or because sbx applied it.
[[nodiscard]] bool had_name(const Layer& layer, const std::string& path);
[[nodiscard]] Noted noted(const struct stat& now);
/// Nobody changed it since; it may have lost names.
[[nodiscard]] bool is_as_noted(const Noted& was, const struct stat& now);
/// A name of the host is not what the run saw under it. A change of the content or of the mode
/// moves ctime, which no call can set back; a file that replaced another has its own,
/// unless its directory was moved there with it. What sbx applied since is the run's own.
[[nodiscard]] bool changed_on_host(const Copy& copy, const std::string& path,
                                   const struct stat& now);

/// True when the plan's workspace is private and writable: something can be brought out of it.
[[nodiscard]] bool has_copy(const plan::Plan& plan);
[[nodiscard]] bool has_overlay(const plan::Plan& plan);

/// The names in a private directory, shown as `target`, that sbx itself put there: for something to
/// be mounted on, or because they were copied in and are as they were then; with those of the
/// directories above them. Sorted.
[[nodiscard]] std::vector<std::string> made_names(const plan::Plan& plan, const std::string& target,
                                                  int directory);

/// A host directory of a mount as the plan saw it. Errors: host "workspace-replaced".
[[nodiscard]] Result<UniqueFd> open_lower(const plan::HostSource& source);
/// Those of all writable overlays, in the order of the mounts. Opened before the run and held, so
/// that its changes can be read whatever becomes of the path meanwhile. Errors: host.
[[nodiscard]] Result<std::vector<UniqueFd>> open_lowers(const plan::Plan& plan);

/// The directories below the layers are still at their paths: what is applied arrives where the
/// user looks for it. Errors: host "workspace-gone", "workspace-replaced".
[[nodiscard]] Status check_in_place(const Copy& copy);

/// Opens what is left of a run in its private tmpfs. No layers when the workspace is none of the
/// run's own. `lowers`: of open_lowers(). Errors: host.
[[nodiscard]] Result<Copy> open_copy(const plan::Plan& plan, int scratch, timespec started,
                                     std::vector<UniqueFd> lowers);

/// The clock of Copy::started, now.
[[nodiscard]] timespec file_clock();

}  // namespace sbx::workspace
