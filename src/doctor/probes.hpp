#pragma once

#include <optional>

/// Single questions to the kernel, each asked in a child process.
namespace sbx::doctor {

/// The errno of the first step that failed, and which step; 0 when all went well.
struct Answer {
  int step = 0;
  int error = 0;
};
/// Nothing: the child that asked was killed.
using Asked = std::optional<Answer>;

enum NamespaceStep : int { kClone = 1, kIdMaps, kRights, kInside };

/// All the namespaces of a run, made as a run makes them, and rights in them.
[[nodiscard]] Asked ask_namespaces();
/// A procfs of the new PID namespace.
[[nodiscard]] Asked ask_procfs();
/// Step 1: overlayfs over a tmpfs; step 2: `user.*` attributes on a tmpfs.
[[nodiscard]] Asked ask_overlay();
[[nodiscard]] Asked ask_tmpfs_attributes();
/// A veth pair in the new network namespace.
[[nodiscard]] Asked ask_veth();
[[nodiscard]] Asked ask_filter();
[[nodiscard]] Asked ask_listener();
[[nodiscard]] Asked ask_landlock();
/// An idmapped clone of the current directory's mount; needs CAP_SYS_ADMIN over it.
[[nodiscard]] Asked ask_idmapped_mount();

}  // namespace sbx::doctor
