#pragma once

#include <optional>

/// Tests of single kernel features, each in a child process.
namespace sbx::doctor {

/// The errno and number of the first failed step; 0 if all succeeded.
struct Answer {
  int step = 0;
  int error = 0;
};
/// Empty: the child was killed.
using Asked = std::optional<Answer>;

enum NamespaceStep : int { kClone = 1, kIdMaps, kRights, kRoot, kInside };

/// Creates all the namespaces of a run, as a run does, and gives them a root of their own.
[[nodiscard]] Asked ask_namespaces();
/// Mounts a procfs of the new PID namespace.
[[nodiscard]] Asked ask_procfs();
/// Step 1: overlayfs over a tmpfs; step 2: `user.*` attributes on a tmpfs.
[[nodiscard]] Asked ask_overlay();
[[nodiscard]] Asked ask_tmpfs_attributes();
/// Creates a veth pair in the new network namespace.
[[nodiscard]] Asked ask_veth();
[[nodiscard]] Asked ask_filter();
[[nodiscard]] Asked ask_listener();
[[nodiscard]] Asked ask_landlock();
/// An idmapped clone of the current directory's mount; needs CAP_SYS_ADMIN over it.
[[nodiscard]] Asked ask_idmapped_mount();

}  // namespace sbx::doctor
