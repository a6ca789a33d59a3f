#include "plan/tier/landlock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/private_disk.hpp"
#include "base/random.hpp"
#include "plan/enforcement.hpp"
#include "plan/files/disk.hpp"
#include "plan/files/inputs.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/reach.hpp"
#include "plan/program/build_directory.hpp"
#include "plan/tier/landlock_checks.hpp"
#include "plan/tier/live.hpp"
#include "plan/tier/namespaces.hpp"
#include "plan/tier/shared_memory.hpp"

namespace sbx::plan {
namespace {

/// Rules around hidden names.
constexpr std::size_t kMostRules = 1000;
constexpr Rights kToRead{.execute = false};

/// Shown as the machine has them, beside what etc_steps() takes: programs look up names there.
/// The host name can be seen in any case, uname(2).
constexpr const char* kEtcAsItIs[] = {"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname",
                                      "/etc/nsswitch.conf"};
constexpr const char* kResolverFile = "/etc/resolv.conf";
constexpr const char* kCpus = "/sys/devices/system/cpu";

/// Where a path of the sandbox's own view lies on the machine.
class Relocations {
 public:
  void add(std::string from, std::string to) { all_.emplace_back(std::move(from), std::move(to)); }
  /// The deepest one decides.
  [[nodiscard]] std::string of(const std::string& path) const {
    const std::pair<std::string, std::string>* best = nullptr;
    for (const auto& each : all_)
      if (is_within(path, each.first) &&
          (best == nullptr || each.first.size() >= best->first.size()))
        best = &each;
    if (best == nullptr) return path;
    return best->second + std::string(below(path, best->first));
  }
  /// The value of a variable: such a path, or a list of them as in PATH. Any other as it is.
  [[nodiscard]] std::string in_list(const std::string& value) const {
    std::string text;
    std::string_view rest = value;
    for (;;) {
      const std::size_t end = rest.find(':');
      const std::string part(rest.substr(0, end));
      text += part.starts_with('/') ? of(part) : part;
      if (end == std::string_view::npos) return text;
      text += ':';
      rest.remove_prefix(end + 1);
    }
  }

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

bool is_private(const Mount& step) {
  return step.kind() == MountKind::copy ||
         (step.kind() == MountKind::scratch && step.source() != private_disk::kShm);
}

/// Below the private directory.
std::string place_of(const Mount& step) {
  if (const auto* copy = step.as<mount::Copy>()) return place_on_disk(*copy) + private_disk::kUpper;
  return step.source();
}

/// A file that lies in no private place of the sandbox's own view.
bool is_given(const std::vector<Mount>& mounts, const Mount& file) {
  return std::ranges::none_of(mounts, [&](const Mount& each) {
    return is_private(each) && is_within(file.target, each.target);
  });
}

std::string given_place(std::size_t number, const Mount& file) {
  return fmt::format("given/{}/{}", number, base_name(file.target));
}

/// Turns a plan of mounts into one of rules.
class ToRules {
 public:
  ToRules(const policy::Policy& policy, const host::Host& host, const DenyRules& denials,
          Plan& plan)
      : policy_(policy), host_(host), denials_(denials), plan_(plan) {}

  Status run();

 private:
  Status make_copies();
  [[nodiscard]] std::string real_place(const std::string& target) const;
  void find_hidden();
  Status take(Mount step);
  Status take_bind(Mount step);
  /// That of a virtual environment is a link to another directory's.
  [[nodiscard]] std::string real_executable() const {
    return host_.files->canonical(plan_.executable).value_or(plan_.executable);
  }
  [[nodiscard]] std::unexpected<Error> out_of_reach() const;
  Status take_socket(Mount step);
  void take_private(Mount step);
  Status take_by_content(Mount step);
  void take_etc();
  void link(const Mount& step);
  Status add_around(const std::string& directory, const Mount& step);
  void relocate();
  void allow(std::string path, const Rights& rights, bool is_directory, const Origin& origin = {}) {
    plan_.access.push_back({.path = std::move(path),
                            .rights = rights,
                            .is_directory = is_directory,
                            .origin = origin});
  }
  [[nodiscard]] bool is_allowed(const std::string& path) const {
    return std::ranges::find(plan_.access, path, &Access::path) != plan_.access.end();
  }
  [[nodiscard]] bool holds_hidden(const std::string& path) const {
    return std::ranges::any_of(hidden_,
                               [&](const std::string& name) { return is_within(name, path); });
  }
  [[nodiscard]] bool is_hidden(const std::string& path) const {
    return std::ranges::any_of(hidden_,
                               [&](const std::string& name) { return is_within(path, name); });
  }
  [[nodiscard]] bool is_reached(const std::string& path);
  [[nodiscard]] bool is_reached(const HostSource& source) {
    return plan_.identity.callers_own ||
           (source.others_may_use && way_to(parent_of(source.path)).is_open);
  }
  [[nodiscard]] bool is_direct(const std::string& path);
  /// What is known of a directory: everybody may go through it; no link leads to it.
  struct Way {
    bool is_open = true;
    bool is_direct = true;
  };
  Way way_to(const std::string& directory);
  /// The same path is asked about several times in a row.
  const Result<host::FileFacts>& look(const std::string& path) {
    if (path != looked_at_) {
      looked_at_ = path;
      facts_ = host_.files->look(path);
    }
    return facts_;
  }

  const policy::Policy& policy_;
  const host::Host& host_;
  const DenyRules& denials_;
  Plan& plan_;
  Relocations places_;
  std::vector<std::string> hidden_;  ///< paths of the machine
  std::map<std::string, Way> ways_;  ///< most of what is shown lies in a few directories
  std::string looked_at_;
  Result<host::FileFacts> facts_;  ///< of `looked_at_`
  std::vector<Mount> kept_;
  std::size_t given_ = 0;  ///< files handed in by content
  bool has_hidden_names_ = false;
};

/// A uid of its own has no other rights than those of everybody.
bool ToRules::is_reached(const std::string& path) {
  const auto& facts = look(path);
  if (!facts) return false;
  return plan_.identity.callers_own || (others_may_use(*facts) && way_to(parent_of(path)).is_open);
}

/// True if no link is in the path.
bool ToRules::is_direct(const std::string& path) {
  const auto& facts = look(path);
  return facts && facts->type != host::FileType::symlink && way_to(parent_of(path)).is_direct;
}

ToRules::Way ToRules::way_to(const std::string& directory) {
  const auto [known, is_new] = ways_.try_emplace(directory);
  if (!is_new) return known->second;
  const auto facts = host_.files->look(directory);
  const Way before = directory == "/" ? Way() : way_to(parent_of(directory));
  known->second = {
      .is_open = before.is_open && facts && (facts->mode & 01U) != 0,
      .is_direct = before.is_direct && facts && facts->type == host::FileType::directory};
  return known->second;
}

/// Where it lies on the machine what a mount shows there: something of /etc may be a link.
std::string ToRules::real_place(const std::string& target) const {
  const Mount* best = nullptr;
  for (const Mount& each : plan_.mounts)
    if (each.kind() == MountKind::bind && is_within(target, each.target) &&
        (best == nullptr || each.target.size() >= best->target.size()))
      best = &each;
  if (best == nullptr) return target;
  return best->host_source()->path + std::string(below(target, best->target));
}

/// What was hidden by mounts is given no rule instead.
void ToRules::find_hidden() {
  for (const Mount& step : plan_.mounts) {
    if (const mount::Layered* layered = step.layered()) {
      if (!step.read_only()) continue;  // the copy leaves them out
      for (const Veil& veil : layered->veils)
        if (veil.kind != VeilKind::directory)
          hidden_.push_back(joined(layered->source.path, veil.path));
      continue;
    }
    const bool is_mask = step.kind() == MountKind::mask_file ||
                         step.kind() == MountKind::mask_directory ||
                         step.kind() == MountKind::content;
    if (is_mask && !is_within(step.target, "/proc")) hidden_.push_back(real_place(step.target));
  }
}

/// What the program may change is a copy, at most half of the private disk.
Status ToRules::make_copies() {
  const Mount* first = nullptr;
  for (Mount& step : plan_.mounts) {
    if (step.kind() == MountKind::overlay && !step.read_only()) become_copy(step);
    if (step.kind() != MountKind::copy) continue;
    if (first != nullptr && is_within(step.target, first->target))
      return needs_namespaces("the mount '" + step.target + "' in the workspace", step.origin,
                              "name a directory without mounts below it");
    if (first == nullptr) first = &step;
    const std::uint64_t most = policy_.limits.disk.value.count / 2;
    const mount::Copy& copy = *step.as<mount::Copy>();
    if (copy.bytes > most)
      return fail({.kind = ErrorKind::policy,
                   .code = "workspace-too-large",
                   .message = "'" + copy.source.path +
                              "' must be copied (without namespaces there are no overlays) and "
                              "holds " +
                              describe(Bytes{copy.bytes}) + ", more than half of limits.disk = " +
                              describe(policy_.limits.disk.value),
                   .origin = step.origin,
                   .hint = "raise it (--disk), or name a smaller directory"});
  }
  return {};
}

Status ToRules::run() {
  plan_.private_directory = std::string(kPrivatePlaces) + "/" + kPrivateName + random_hex();
  plan_.identity.privileged = false;
  plan_.identity.callers_own = plan_.tier == TierKind::same_uid;
  plan_.identity.own_uids = !plan_.identity.callers_own;
  plan_.disk_in_directory = true;
  plan_.access.clear();
  std::erase_if(plan_.degraded, [](const Degraded& entry) {
    return entry.promise == Promise::workspace_mode || entry.promise == Promise::hidden_files;
  });
  SBX_TRY(make_copies());
  find_hidden();
  // Private places first: what is granted may have to be linked into them.
  std::vector<Mount> rest;
  for (Mount& step : std::exchange(plan_.mounts, {})) {
    if (step.kind() == MountKind::scratch && step.source().starts_with(private_disk::kOwn))
      return needs_namespaces("the directory '" + step.target + "' of filesystem.private",
                              step.origin, kWithNamespaces);
    if (is_private(step))
      take_private(std::move(step));
    else
      rest.push_back(std::move(step));
  }
  for (Mount& step : rest) SBX_TRY(take(std::move(step)));
  // A removed directory's blocks are freed with the last reference, and a file system that discards
  // them at once waits for the disk. Landlock's reference is the last one then: the kernel gives it
  // up in the background after the program's end (landlock_put_ruleset_deferred).
  plan_.access.push_back({.path = plan_.private_directory, .holds_only = true});
  take_etc();
  for (const char* const path : open_in_outer_proc())
    if (denials_.covers(path) == nullptr) allow(path, kToRead, false);
  const bool hides_cpus = std::ranges::any_of(
      denials_.literals(), [](const DenyRule* rule) { return is_within(rule->pattern, kCpus); });
  if (!hides_cpus && denials_.covers(kCpus) == nullptr) allow(kCpus, kToRead, true);
  lend_shared_memory(host_, plan_);
  plan_.mounts = std::move(kept_);
  relocate();
  if (has_hidden_names_)
    plan_.degraded.push_back({.promise = Promise::hidden_files,
                              .why = "Landlock's rules only add rights",
                              .instead = "the names of what is hidden can be seen, its contents "
                                         "can't"});
  return {};
}

void ToRules::take_private(Mount step) {
  std::string place = plan_.private_directory + "/" + place_of(step);
  allow(place, step.rights, true, step.origin);
  places_.add(step.target, std::move(place));
  kept_.push_back(std::move(step));
}

Status ToRules::take(Mount step) {
  switch (step.kind()) {
    case MountKind::overlay: {  // read-only
      HostSource source = std::move(*step.host_source());
      step.payload = mount::Bind{.source = std::move(source), .recursive = true};
      return take_bind(std::move(step));
    }
    case MountKind::bind:
      return take_bind(std::move(step));
    case MountKind::device:
      allow(step.source(), step.rights, false);
      kept_.push_back(std::move(step));
      return {};
    case MountKind::file:  // in the sandbox's own /etc: take_etc() shows the machine's instead
    case MountKind::directory:
      if (!is_given(kept_, step)) kept_.push_back(std::move(step));
      return {};
    case MountKind::scratch:
    case MountKind::copy:
    case MountKind::symlink:
    case MountKind::devpts:
    case MountKind::proc:
    case MountKind::outer_proc:
    case MountKind::mask_file:
    case MountKind::mask_directory:
    case MountKind::read_only:
    case MountKind::pinned:
    case MountKind::content:
      return {};
  }
  return {};
}

/// A file or directory of the machine, under its own path.
Status ToRules::take_bind(Mount step) {
  const HostSource& source = *step.host_source();
  const bool is_granted = !step.origin.file.empty() || !step.read_only();
  if (is_granted && step.target != source.path &&
      host_.files->canonical(step.target).value_or("") != source.path)
    return needs_namespaces("'" + source.path + "' under the other name '" + step.target + "'",
                            step.origin, "name the path alone: it is shown where it is");
  if (source.is_socket) return take_socket(std::move(step));
  if (!is_reached(source)) {
    const bool is_of_etc = is_within(step.target, "/etc") || is_within(step.target, "/var");
    if (!is_granted && is_of_etc) return {};
    if (!source.is_directory) return take_by_content(std::move(step));
    if (is_within(plan_.executable, step.target) || is_within(real_executable(), step.target))
      return out_of_reach();
    if (!is_granted) return {};
    return needs_namespaces(
        "the grant of '" + source.path + "', which others than its owner can't read or reach,",
        step.origin, "--workspace DIR:overlay copies it; or keep it outside of root's home");
  }
  link(step);
  places_.add(step.target, step.target);
  if (source.is_directory && holds_hidden(source.path)) {
    SBX_TRY(add_around(source.path, step));
  } else if (!is_hidden(source.path)) {
    allow(source.path, step.rights, source.is_directory, step.origin);
  }
  kept_.push_back(std::move(step));
  return {};
}

/// An interpreter in root's home, as its installers put it there.
std::unexpected<Error> ToRules::out_of_reach() const {
  return fail({.kind = ErrorKind::policy,
               .code = "needs-namespaces",
               .message = "only its owner can reach '" + real_executable() +
                          "', which a program with a uid of its own can't run",
               .hint = "install it outside of root's home, such as in /usr/local; or " +
                       std::string(kWithNamespaces),
               .retry = Retry::with_callers_uid});
}

/// The supervisor connects to it, with the program's ids.
Status ToRules::take_socket(Mount step) {
  const HostSource& source = *step.host_source();
  const auto facts = host_.files->look(source.path);
  if (!plan_.identity.callers_own && (!facts || (facts->mode & 02U) == 0))
    return needs_namespaces(
        "the grant of the socket '" + source.path + "', which others than its owner can't use,",
        step.origin, "chmod o+w of it, or run sbx as its owner");
  plan_.sockets.push_back(
      {.path = source.path, .target = step.target, .device = source.device, .inode = source.inode});
  link(step);
  places_.add(step.target, step.target);
  kept_.push_back(std::move(step));
  return {};
}

/// A relative name in a private place leads to what is granted there. A copy has it already.
void ToRules::link(const Mount& step) {
  const bool is_copied = std::ranges::any_of(kept_, [&](const Mount& each) {
    return each.kind() == MountKind::copy && is_within(step.target, each.target);
  });
  if (is_copied || is_given(kept_, step)) return;
  Mount link = symlink_step(step.host_source()->path, step.target);
  link.origin = step.origin;
  kept_.push_back(std::move(link));
}

/// Only its owner can read it, or reach it: a copy is handed in.
Status ToRules::take_by_content(Mount step) {
  const HostSource& source = *step.host_source();
  auto content = host_.files->read_head(source.path, kMostInputBytes + 1);
  if (!content || content->size() > kMostInputBytes)
    return needs_namespaces(
        "the grant of '" + source.path + "', which others than its owner can't read or reach,",
        step.origin, "a file of up to 64 MiB is copied in");
  const auto facts = host_.files->look(source.path);
  const mode_t mode = facts && (facts->mode & 0111U) != 0 ? 0555 : 0444;
  Mount file = file_step(std::move(*content), step.target, mode);
  file.as<mount::File>()->copied_from = source.path;
  file.origin = step.origin;
  if (is_given(kept_, file)) {
    std::string place = plan_.private_directory + "/" + given_place(given_++, file);
    allow(place, Rights{}, false, step.origin);
    places_.add(step.target, std::move(place));
  }
  kept_.push_back(std::move(file));
  return {};
}

/// Rules for each name on the way to what is hidden, but for that.
Status ToRules::add_around(const std::string& top, const Mount& step) {
  has_hidden_names_ = true;
  std::vector<std::string> waiting{top};
  while (!waiting.empty()) {
    const std::string directory = std::move(waiting.back());
    waiting.pop_back();
    plan_.access.push_back({.path = directory,
                            .rights = step.rights,
                            .is_directory = true,
                            .lists_only = true,
                            .origin = step.origin});
    const auto entries = SBX_TRY(host_.files->list(directory));
    for (const host::Entry& entry : entries) {
      const std::string path = joined(directory, entry.name);
      const bool is_directory = entry.type == host::FileType::directory;
      if ((!is_directory && entry.type != host::FileType::regular) || is_hidden(path)) continue;
      if (is_directory && holds_hidden(path))
        waiting.push_back(path);
      else if (is_reached(path))
        allow(path, step.rights, is_directory, step.origin);
    }
    if (plan_.access.size() > kMostRules)
      return needs_namespaces("what filesystem.deny hides in '" + top + "', beside so many names,",
                              step.origin,
                              "--workspace DIR:overlay copies it without them; or name the parts");
  }
  return {};
}

void ToRules::take_etc() {
  const auto take = [&](const char* path) {
    auto real = is_direct(path) ? Result<std::string>(path) : host_.files->canonical(path);
    if (real && denials_.covers(path) == nullptr && denials_.covers(*real) == nullptr &&
        !is_allowed(*real) && is_reached(*real))
      allow(std::move(*real), kToRead, false);
  };
  for (const char* const path : kEtcAsItIs) take(path);
  if (!plan_.network.own_namespace) take(kResolverFile);
}

/// From here on every path is one of the machine.
void ToRules::relocate() {
  for (std::string& word : plan_.command)
    if (word.starts_with('/')) word = places_.of(word);
  move_build_directory(plan_.command, places_.of("/tmp"));
  plan_.executable = places_.of(plan_.executable);
  plan_.working_directory = places_.of(plan_.working_directory);
  for (std::string& entry : plan_.environment) {
    const std::size_t value = entry.find('=') + 1;
    entry = entry.substr(0, value) + places_.in_list(entry.substr(value));
  }
  // What is not granted is refused here and not absent, and git ends at a refusal.
  if (host_.files->look("/etc/gitconfig")) plan_.environment.emplace_back("GIT_CONFIG_NOSYSTEM=1");
}

}  // namespace

Status lay_out_rules(const policy::Policy& policy, const host::Host& host,
                     const RunRequest& request, Plan& plan) {
  SBX_TRY(check_without_namespaces(policy, host, request, plan));
  const auto sight = SBX_TRY(lay_out_files(policy, host, request, plan));
  keep_special_files_out(plan, Around::live_grants);
  if (auto obstacle = live_obstacle(host, plan))
    return needs_namespaces(obstacle->what, obstacle->origin, std::move(obstacle->hint));
  SBX_TRY(ToRules(policy, host, sight->denials, plan).run());
  plan.network.closed = plan.network.own_namespace;
  plan.network.own_namespace = false;
  plan.network.named = false;
  return {};
}

std::string place_in_private(const Plan& plan, const Mount& step) {
  const Mount* best = nullptr;
  std::size_t given = 0;
  bool is_before = true;
  for (const Mount& each : plan.mounts) {
    if (is_private(each) && is_within(step.target, each.target) &&
        (best == nullptr || each.target.size() >= best->target.size()))
      best = &each;
    is_before = is_before && &each != &step;
    const auto* file = each.as<mount::File>();
    if (is_before && file != nullptr && is_given(plan.mounts, each)) ++given;
  }
  if (best != nullptr) return place_of(*best) + std::string(below(step.target, best->target));
  return step.kind() == MountKind::file ? given_place(given, step) : std::string();
}

}  // namespace sbx::plan
