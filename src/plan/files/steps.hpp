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
  std::string source;  ///< on the host, canonical; empty: nothing of the host, an empty folder
  std::string target;  ///< inside
  bool writable = false;
  bool live = false;  ///< what is written reaches the host
  bool system = false;
};

/// What is visible inside; grows while the plan is made.
class View {
 public:
  explicit View(const Denials& denials) : denials_(denials) {}
  void add(Cover cover);
  /// The path inside of a canonical path of the host; empty when it is not visible.
  [[nodiscard]] std::string inside(const std::string& host_path) const;
  /// A link of the system's own at `place`, "/lib" -> "usr/lib".
  void add_link(std::string place, const std::string& text);
  /// The path inside with links of the system's own resolved: mount targets are made without
  /// following links.
  [[nodiscard]] std::string settled(const std::string& inside_path) const;
  /// An error when a canonical path of the host is hidden: in the system and in interpreters by a
  /// rule without wildcards only. Errors: policy "denied-grant".
  [[nodiscard]] Status check_not_hidden(const std::string& doing, const std::string& host_path,
                                        bool literally) const;
  /// The deepest cover over a path inside; null when there is none.
  [[nodiscard]] const Cover* over(const std::string& inside_path) const;

 private:
  const Denials& denials_;
  std::vector<Cover> covers_;
  std::map<std::string, std::size_t, std::less<>> last_at_;  ///< position of the last cover there
  std::vector<std::pair<std::string, std::string>> links_;
};

/// A bind of `source` as it was found. Folders are bound with what is mounted below them, because
/// in a user namespace the kernel refuses to show what a submount hides (EINVAL).
[[nodiscard]] Mount bind_step(const std::string& source, const std::string& target,
                              const host::FileFacts& facts);
[[nodiscard]] Mount directory_step(std::string target, mode_t mode = 0755);
[[nodiscard]] Mount symlink_step(std::string text, std::string target);
[[nodiscard]] Mount file_step(std::string content, std::string target, mode_t mode = 0644);
/// device, scratch, proc and their like: a kind, a target and perhaps a source.
[[nodiscard]] Mount plain_step(MountKind kind, std::string target, std::string source = {});

/// What the sandbox's uid can read of a single file or of a folder's names as they stand, by the
/// "other" bits: as root it is nobody's uid on the host.
[[nodiscard]] bool others_may_use(const host::FileFacts& facts);

/// Shallow to deep by target, otherwise as they are.
void sort_by_depth(std::vector<Mount>& mounts);

}  // namespace sbx::plan
