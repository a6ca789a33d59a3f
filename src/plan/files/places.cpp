#include "plan/files/places.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/private_disk.hpp"
#include "plan/files/git_worktree.hpp"
#include "plan/files/grants.hpp"
#include "plan/files/guard.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/medium.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/refuse.hpp"
#include "plan/files/workspace.hpp"

namespace sbx::plan {
namespace {

// Synthetic file systems, and those that show other parts of the host: never shown as submounts of
// a granted directory.
constexpr std::array<std::string_view, 17> kKernelTypes = {
    "proc",    "sysfs",    "devtmpfs",    "devpts",  "cgroup", "cgroup2",
    "debugfs", "tracefs",  "securityfs",  "bpf",     "mqueue", "configfs",
    "pstore",  "efivarfs", "binfmt_misc", "fusectl", "nsfs"};

/// connect(2) requires write permission on the socket, unix(7).
bool usable_by_others(const Grant& grant) {
  if (grant.facts.type == host::FileType::socket) return (grant.facts.mode & 02U) != 0;
  return others_may_use(grant.facts);
}

/// Why a user other than the caller and root can change or replace a file; empty if none can. In a
/// sticky directory such as /tmp only the owner replaces an entry.
std::string stranger_over(const host::Host& host, const std::string& file) {
  constexpr mode_t kOthersWrite = 022;
  constexpr mode_t kSticky = 01000;
  for (std::string place = file;; place = parent_of(place)) {
    const auto facts = host.files->look(place);
    if (!facts) return "'" + place + "' can't be looked at";
    if (facts->uid != 0 && facts->uid != host.uid) return "'" + place + "' belongs to another user";
    const bool is_directory = facts->type == host::FileType::directory;
    const bool kept = is_directory && (facts->mode & kSticky) != 0;
    const bool has_mode = facts->type != host::FileType::symlink;  // a link's says nothing
    if (has_mode && (facts->mode & kOthersWrite) != 0 && !kept)
      return "others can write '" + place + "'";
    if (place == "/") return {};
  }
}

enum class Extent : std::uint8_t { alone, with_submounts };

/// The mounts below a granted directory.
struct Below {
  std::string first;         ///< path of the first; empty: none
  std::vector<Grant> shown;  ///< without those that filesystem.deny hides
};

/// Turns resolved grants into steps.
class Placer {
 public:
  Placer(const policy::Policy& policy, const host::Host& host, const DenyRules& denials, View& view)
      : policy_(policy), host_(host), denials_(denials), view_(view) {}

  Result<Places> place();

 private:
  Status collect(const policy::SourcedList<policy::PathGrant>& grants, GrantKind kind);
  Status collect_all();
  Status collect_private();
  Status collect_worktree(const Grant& workspace);
  Status insert(Grant grant);
  [[nodiscard]] bool is_superseded(const Grant& grant) const;
  Status add(const Grant& grant);
  Status check_mount_point(Grant& grant, bool& visible) const;
  Status read_mounts();
  Result<Below> submounts(const Grant& grant);
  Status note_medium(const Grant& grant);
  void add_empty(const Grant& grant);
  void add_step(const Grant& grant, Extent extent);
  void add_copies(const Grant& grant, const Below& below_it);
  void seal_policy_files(Guard& guard);
  void seal_way(Guard& guard, const std::string& way);
  [[nodiscard]] const DenyRule* hiding_rule(const Grant& grant) const;

  const policy::Policy& policy_;
  const host::Host& host_;
  const DenyRules& denials_;
  View& view_;
  std::vector<Grant> grants_;                      ///< one per target
  std::map<std::string, std::size_t> granted_at_;  ///< their positions, while grants are collected
  std::vector<Shown> shown_;                       ///< directories, and mounts in them
  Places places_;
  std::optional<std::vector<host::MountPoint>> mounts_;  ///< read on first use
  std::string workspace_;                                ///< inside
  std::size_t own_ = 0;                                  ///< directories of filesystem.private
};

Status Placer::collect(const policy::SourcedList<policy::PathGrant>& grants, GrantKind kind) {
  for (const auto& each : grants) {
    auto grant = SBX_TRY(resolve_grant(host_, each, kind, home_of(policy_.environment)));
    if (!grant) {
      places_.explanations.push_back("'" + each.value.source + "' is optional and missing");
      continue;
    }
    if (const DenyRule* rule = hiding_rule(*grant)) {
      if (!each.value.optional)
        return denied_grant("grant '" + each.value.source + "'", *rule, each.origin);
      places_.explanations.push_back("'" + each.value.source + "' is optional and hidden by " +
                                     describe(*rule));
      continue;
    }
    grant->target = view_.settled(grant->target);
    SBX_TRY(insert(std::move(*grant)));
  }
  return {};
}

/// A hidden name stays hidden even if it is a link to something else.
const DenyRule* Placer::hiding_rule(const Grant& grant) const {
  const DenyRule* rule = denials_.covers(grant.source);
  if (rule == nullptr && !grant.chosen_target) rule = denials_.covers(grant.target);
  return rule;
}

/// At one target the strongest grant wins.
Status Placer::insert(Grant grant) {
  const auto [known, is_new] = granted_at_.emplace(grant.target, grants_.size());
  if (is_new) {
    grants_.push_back(std::move(grant));
    return {};
  }
  Grant* const same = &grants_[known->second];
  if (same->kind != GrantKind::empty && same->source != grant.source)
    return refuse("two-grants",
                  "both '" + same->source + "' and '" + grant.source + "' are granted at '" +
                      grant.target + "'",
                  grant.origin,
                  "give one of them another target (the other: " + same->origin.text() + ")");
  if (same->kind < grant.kind)
    *same = std::move(grant);
  else if (same->kind == grant.kind)
    same->special = same->special || grant.special;
  return {};
}

/// A mount below a directory of the host needs an existing mount point: sbx creates none there.
Status Placer::check_mount_point(Grant& grant, bool& visible) const {
  const Cover* over = view_.over(grant.target);
  if (over == nullptr || over->source.empty()) return {};
  const bool same = view_.inside(grant.source) == grant.target;
  visible = over->system && same && grant.kind == GrantKind::read;
  if (visible) return {};
  const std::string place = over->source + std::string(below(grant.target, over->target));
  const auto real = host_.files->canonical(place);
  if (real && *real != place && !grant.chosen_target) {
    // The target is a link in a tree that is already visible: the program follows it, so mount
    // where it leads.
    grant.target = grant.source;
    visible = view_.inside(grant.source) == grant.source && grant.kind == GrantKind::read;
    return {};
  }
  if (real && *real == place) {
    const host::FileFacts facts = SBX_TRY(host_.files->look(place));
    if ((facts.type == host::FileType::directory) ==
        (grant.facts.type == host::FileType::directory))
      return {};
  } else if (over->writable && !over->live) {
    const std::string obstacle = obstacle_on_the_way(host_, place, over->source);
    if (obstacle.empty() && !host_.files->look(place)) return {};  // created in the private copy
    return refuse("no-mount-point",
                  "cannot mount on '" + grant.target +
                      "': " + (obstacle.empty() ? "it is a symbolic link" : obstacle),
                  grant.origin, "write the path that it leads to, or choose another target");
  }
  return refuse("no-mount-point",
                "'" + grant.target + "' lies in '" + over->target + "', which has no such " +
                    (grant.facts.type == host::FileType::directory ? "directory" : "file") +
                    " to mount on",
                grant.origin, "choose a target outside of it");
}

Status Placer::read_mounts() {
  if (!mounts_) mounts_ = SBX_TRY(host::mounts(*host_.files));
  return {};
}

/// Each submount becomes a grant of its own: it isn't part of its parent directory. filesystem.deny
/// hides what lies below a hidden mount by name, as it does the mount itself if it is bound with
/// its parent.
Result<Below> Placer::submounts(const Grant& grant) {
  Below found;
  if (grant.facts.type != host::FileType::directory) return found;
  SBX_TRY(read_mounts());
  for (const host::MountPoint& mount : *mounts_) {
    if (mount.path == grant.source || !is_within(mount.path, grant.source)) continue;
    std::string target = grant.target;
    target += below(mount.path, grant.source);
    if (found.first.empty()) found.first = mount.path;
    if (denials_.covers(mount.path) != nullptr) continue;
    if (std::ranges::find(found.shown, target, &Grant::target) != found.shown.end())
      continue;  // stacked on another mount
    const auto facts = host_.files->look(mount.path);
    const bool usable = facts && (facts->type == host::FileType::directory ||
                                  facts->type == host::FileType::regular);
    if (!usable || std::ranges::find(kKernelTypes, mount.type) != kKernelTypes.end())
      return refuse("unusable-submount",
                    "cannot grant '" + grant.source + "': '" + mount.path +
                        "' in it is a mount of type " + mount.type +
                        (facts ? "" : " that can't be looked at"),
                    grant.origin, "grant the directories beside it one by one");
    found.shown.push_back({.kind = grant.kind,
                           .source = mount.path,
                           .target = std::move(target),
                           .facts = *facts,
                           .origin = grant.origin,
                           .special = grant.special});
  }
  return found;
}

Status Placer::note_medium(const Grant& grant) {
  if (grant.kind != GrantKind::live) return {};
  SBX_TRY(read_mounts());
  const Medium medium = medium_of(grant.source, *mounts_);
  if (medium == Medium::uncountable)
    return refuse("uncountable-grant",
                  "cannot grant '" + grant.source +
                      "' for writing: its file system, in memory, does not count what lies on it, "
                      "so limits.disk can't be kept there",
                  grant.origin, "mount a tmpfs with a size there, or grant a directory elsewhere");
  if (medium == Medium::memory) places_.live_in_memory.push_back(grant.source);
  if (medium == Medium::unseen) places_.live_on_overlay.push_back(grant.source);
  return {};
}

void Placer::add_empty(const Grant& grant) {
  std::string place = grant.target == workspace_ ? private_disk::kWorkspace
                                                 : private_disk::kOwn + std::to_string(own_++);
  Mount step = plain_step(mount::Scratch{std::move(place)}, grant.target);
  step.origin = grant.origin;
  places_.steps.push_back(std::move(step));
  view_.add({.source = {}, .target = grant.target, .writable = true});
}

void Placer::add_step(const Grant& grant, Extent extent) {
  Mount step = bind_step(grant.source, grant.target, grant.facts);
  // The host's sockets can be reached through a bind but not through an overlay.
  const bool is_directory = step.host_source()->is_directory;
  const bool is_layered = is_directory && grant.kind != GrantKind::live && extent == Extent::alone;
  if (grant.kind == GrantKind::live || (is_directory && grant.kind == GrantKind::copy))
    step.rights = kWritable;
  step.as<mount::Bind>()->recursive = extent == Extent::with_submounts;
  step.rights.special = grant.kind != GrantKind::live || grant.special;
  step.host_source()->needs_idmap =
      host_.privileged && (is_directory || !step.read_only() || !usable_by_others(grant));
  if (is_layered) step.payload = mount::Overlay{{.source = std::move(*step.host_source())}};
  step.origin = grant.origin;
  view_.add({.source = grant.source,
             .target = grant.target,
             .writable = !step.read_only(),
             .live = grant.kind == GrantKind::live});
  if (is_directory)
    shown_.push_back({.grant = grant, .step = places_.steps.size(), .layered = is_layered});
  places_.steps.push_back(std::move(step));
}

/// Copies each mount separately: a copy doesn't hide submounts.
void Placer::add_copies(const Grant& grant, const Below& below_it) {
  add_step(grant, Extent::alone);
  become_copy(places_.steps.back());
  for (const Grant& submount : below_it.shown) {
    add_step(submount, Extent::alone);
    become_copy(places_.steps.back());
  }
  places_.degraded.push_back(
      {.promise = Promise::workspace_mode,
       .why = "'" + below_it.first + "' is a mount in '" + grant.source +
              "', and to an ordinary user the kernel refuses an overlay then",
       .instead = "the directory is a copy, made when the run began"});
}

Status Placer::add(const Grant& grant) {
  if (grant.kind == GrantKind::empty) {
    const Cover* over = view_.over(grant.target);
    // Its mount point would be made on the host.
    if (grant.target != workspace_ && over != nullptr && !over->source.empty())
      return refuse("forbidden-grant",
                    "'" + grant.target + "' can't be a directory of the run's own: it lies in '" +
                        over->target + "', which is shown",
                    grant.origin, "name another one, as \"/data\"");
    add_empty(grant);
    return {};
  }
  const Below below_it = SBX_TRY(submounts(grant));
  SBX_TRY(note_medium(grant));
  for (const Grant& submount : below_it.shown) SBX_TRY(note_medium(submount));
  // For an ordinary user a mount and its submounts form one unit: a user namespace may not reveal
  // what they hide, so neither a bind nor an overlay of the mount alone is possible (EINVAL). As
  // root each is mounted separately, because one that can't be idmapped would fail all.
  const bool as_one = !host_.privileged && !below_it.first.empty();
  const bool copied = as_one && grant.kind == GrantKind::copy;
  if (copied) {
    add_copies(grant, below_it);
  } else {
    add_step(grant, as_one ? Extent::with_submounts : Extent::alone);
    if (!as_one)
      for (const Grant& submount : below_it.shown) add_step(submount, Extent::alone);
    if (as_one)
      for (const Grant& submount : below_it.shown)
        if (submount.facts.type == host::FileType::directory)
          shown_.push_back({.grant = submount, .step = places_.steps.size() - 1});
  }
  places_.explanations.push_back(
      "'" + grant.source + "' is shown " + describe(grant.kind) +
      (grant.source == grant.target ? "" : " at '" + grant.target + "'") + " (" +
      grant.origin.text() + ")");
  return {};
}

void Placer::seal_policy_files(Guard& guard) {
  for (const std::string& file : policy_.files) {
    const auto real = host_.files->canonical(file);
    const std::string inside = real ? view_.inside(*real) : std::string();
    const Cover* over = inside.empty() ? nullptr : view_.over(inside);
    std::string why = real ? stranger_over(host_, *real) : "it can't be found again";
    if (over != nullptr && over->live) {
      why = "its directory is granted for writing";
      places_.notes.push_back("warning: policy '" + file +
                              "' is in a directory that this run can write: a program could change "
                              "what the next run allows");
    }
    if (!why.empty())
      places_.degraded.push_back({.promise = Promise::trusted_policy,
                                  .why = "the policy file '" + file + "': " + why,
                                  .instead = inside.empty() ? "" : "it is read-only inside"});
    if (!inside.empty()) guard.seal(inside, {.file = file, .layer = Layer::file});
  }
  for (const std::string& way : policy_.ways) seal_way(guard, way);
}

/// A symbolic link has no content: a mount over it keeps its name from being replaced.
void Placer::seal_way(Guard& guard, const std::string& way) {
  const std::string inside = view_.inside(way);
  const Cover* over = inside.empty() ? nullptr : view_.over(inside);
  std::string why = stranger_over(host_, way);
  if (over != nullptr && over->live) {
    why = "its directory is granted for writing";
    places_.notes.push_back("warning: '" + way +
                            "', which leads to the policy, is in a directory that this run can "
                            "write: a program could change what the next run allows");
  }
  if (!why.empty())
    places_.degraded.push_back({.promise = Promise::trusted_policy,
                                .why = "'" + way + "', which leads to the policy: " + why,
                                .instead = inside.empty() ? "" : "it is read-only inside"});
  if (!inside.empty()) guard.seal(inside, {.file = way, .layer = Layer::file});
}

/// An empty workspace yields to any grant that shows the same directory.
bool Placer::is_superseded(const Grant& grant) const {
  if (grant.kind != GrantKind::empty || grant.source.empty()) return false;
  const Cover* over = view_.over(grant.target);
  return over != nullptr && !over->system && view_.inside(grant.source) == grant.target;
}

Status Placer::collect_all() {
  SBX_TRY(collect(policy_.filesystem.read, GrantKind::read));
  SBX_TRY(collect(policy_.filesystem.write, GrantKind::live));
  SBX_TRY(collect_private());
  for (const auto& each : policy_.filesystem.sockets) {
    Grant socket = SBX_TRY(resolve_socket(host_, each));
    if (const DenyRule* rule = hiding_rule(socket))
      return denied_grant("hand in the socket '" + each.value + "'", *rule, each.origin);
    socket.target = view_.settled(socket.target);
    SBX_TRY(insert(std::move(socket)));
  }
  // A deeper grant changes what a shallower one shows, so shallow ones come first.
  std::ranges::stable_sort(grants_, {}, [](const Grant& grant) { return depth_of(grant.target); });
  return {};
}

Status Placer::collect_private() {
  const std::string home = home_of(policy_.environment);
  for (const auto& each : policy_.filesystem.private_) {
    const std::string& path = each.value;
    std::string target = view_.settled(path);
    const std::string why =
        is_forbidden(path) || is_system_directory(path) || is_within(path, "/etc")
            ? "a system directory"
        : is_within(workspace_, path) ? "above or equal to the workspace"
        : is_within(home, path)       ? "above or equal to the home inside"
        : is_within("/tmp", path) || is_within("/var/tmp", path) || is_within("/run", path)
            ? "there already"
            : "";
    if (!why.empty())
      return refuse("forbidden-grant",
                    "'" + path + "' can't be a directory of the run's own: it is " + why,
                    each.origin, "name another one, as \"/data\"");
    if (granted_at_.contains(target)) continue;  // what is granted is shown
    SBX_TRY(insert({.kind = GrantKind::empty,
                    .source = {},
                    .target = std::move(target),
                    .facts = {},
                    .origin = each.origin}));
  }
  return {};
}

/// A linked git worktree also needs its repository: git commands fail without it.
Status Placer::collect_worktree(const Grant& workspace) {
  if (workspace.kind == GrantKind::empty || workspace.source.empty()) return {};
  const std::string repository = worktree_repository(*host_.files, workspace.source);
  if (repository.empty() || !view_.inside(repository).empty() ||
      denials_.covers(repository) != nullptr || !host_.files->may_read(repository))
    return {};
  places_.explanations.push_back("'" + workspace.source + "' is a worktree of the repository '" +
                                 repository + "'");
  return insert({.kind = GrantKind::read,
                 .source = repository,
                 .target = repository,
                 .facts = SBX_TRY(host_.files->look(repository)),
                 .origin = workspace.origin});
}

Result<Places> Placer::place() {
  WorkspaceChoice workspace = SBX_TRY(choose_workspace(host_, policy_.filesystem.workspace,
                                                       home_of(policy_.environment), denials_));
  places_.working_directory = workspace.working_directory;
  workspace_ = workspace.grant.target;
  if (!workspace.note.empty()) places_.notes.push_back(std::move(workspace.note));
  const bool below_empty = workspace.grant.kind == GrantKind::empty &&
                           places_.working_directory != workspace.grant.target;
  SBX_TRY(collect_worktree(workspace.grant));
  SBX_TRY(insert(std::move(workspace.grant)));
  SBX_TRY(collect_all());
  for (Grant& grant : grants_) {
    bool visible = is_superseded(grant);
    if (grant.kind != GrantKind::empty) SBX_TRY(check_mount_point(grant, visible));
    if (!visible) SBX_TRY(add(grant));
  }
  if (below_empty) places_.steps.push_back(directory_step(places_.working_directory));
  Guard guard(policy_, host_, view_, denials_, grants_,
              {places_.steps, places_.live, places_.degraded, places_.explanations,
               places_.state_directories, places_.placeholders});
  SBX_TRY(guard.run(shown_));
  seal_policy_files(guard);
  sort_by_depth(places_.steps);
  return std::move(places_);
}

}  // namespace

Result<Places> decide_places(const policy::Policy& policy, const host::Host& host,
                             const DenyRules& denials, View& view) {
  return Placer(policy, host, denials, view).place();
}

}  // namespace sbx::plan
