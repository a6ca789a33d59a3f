#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/plan.hpp"

/// Mount steps and what they make visible.
namespace sbx::plan {

/// A tree of the host that is visible inside.
struct Cover {
  std::string source;  ///< canonical host path; empty: shows nothing of the host
  std::string target;  ///< inside
  bool writable = false;
  bool live = false;  ///< writes reach the host
  bool system = false;
};

/// What is visible inside; grows while the plan is made.
class View {
 public:
  explicit View(const DenyRules& denials) : denials_(denials) {}
  void add(Cover cover);
  /// The path inside for a canonical host path; empty if it is not visible.
  [[nodiscard]] std::string inside(const std::string& host_path) const;
  /// A link of the system at `place`, "/lib" -> "usr/lib".
  void add_link(std::string place, const std::string& text);
  /// The path inside with the system's links resolved: mount targets are created without following
  /// links.
  [[nodiscard]] std::string settled(const std::string& inside_path) const;
  /// An error if a canonical host path is hidden. In the system and in interpreters only rules
  /// without wildcards count. Errors: policy "denied-grant".
  [[nodiscard]] Status check_not_hidden(const std::string& doing, const std::string& host_path,
                                        bool literally) const;
  /// The deepest cover over a path inside; null if there is none.
  [[nodiscard]] const Cover* over(const std::string& inside_path) const;

 private:
  const DenyRules& denials_;
  std::vector<Cover> covers_;
  std::map<std::string, std::size_t, std::less<>> last_at_;  ///< index of the last cover there
  std::vector<std::pair<std::string, std::string>> links_;
};

/// A bind of `source` with its recorded identity. Directories are bound with their submounts,
/// because in a user namespace the kernel refuses to reveal what a submount hides (EINVAL).
[[nodiscard]] Mount bind_step(const std::string& source, const std::string& target,
                              const host::FileFacts& facts);
[[nodiscard]] Mount directory_step(std::string target, mode_t mode = 0755);
[[nodiscard]] Mount symlink_step(std::string text, std::string target);
[[nodiscard]] Mount file_step(std::string content, std::string target, mode_t mode = 0644);
/// A step that is not read-only: a device, a private directory, a procfs and the like.
[[nodiscard]] Mount plain_step(mount::Payload payload, std::string target);

/// True if the sandbox's uid can read this file, or list this directory, by the "other" permission
/// bits: under root identity that uid belongs to nobody on the host.
[[nodiscard]] bool others_may_use(const host::FileFacts& facts);

/// Sorts by depth of the target, stably.
void sort_by_depth(std::vector<Mount>& mounts);

}  // namespace sbx::plan
