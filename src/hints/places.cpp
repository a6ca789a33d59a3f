#include "hints/places.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "plan/files/grants.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"
#include "plan/tier/landlock.hpp"

namespace sbx::hints {
namespace {

using plan::MountKind;

constexpr std::string_view kHomeOfRoot = "/root";
constexpr auto kNever =
    std::to_array<std::string_view>({"/proc", "/sys", "/dev", "/run", kHomeOfRoot, "/etc"});

bool shows_something(const plan::Mount& mount) {
  const MountKind kind = mount.kind();
  return kind == MountKind::bind || kind == MountKind::overlay || kind == MountKind::copy ||
         kind == MountKind::scratch || kind == MountKind::file || kind == MountKind::proc ||
         kind == MountKind::outer_proc;
}

/// The mount that a path is on; null: the sandbox's own root.
const plan::Mount* mount_of(const plan::Plan& plan, const std::string& path) {
  const plan::Mount* deepest = nullptr;
  for (const plan::Mount& mount : plan.mounts)
    if (shows_something(mount) && plan::is_within(path, mount.target) &&
        (deepest == nullptr || mount.target.size() >= deepest->target.size()))
      deepest = &mount;
  return deepest;
}

bool has_dotted_part(std::string_view below) {
  return below.contains("/.");
}

bool is_plain(host::FileType type) {
  return type == host::FileType::regular || type == host::FileType::directory;
}

}  // namespace

bool is_private(const std::string& path, const host::Host& host) {
  return std::ranges::any_of(kNever, [&](auto place) {
    return plan::is_within(path, place) && (place != kHomeOfRoot || host.home != kHomeOfRoot);
  });
}

Places::Places(const policy::Policy& policy, const plan::Plan& plan, const host::Host& host,
               const std::vector<std::string>& typed, Reader reader)
    : files_(policy.filesystem),
      plan_(plan),
      host_(host),
      typed_(typed),
      reader_(reader),
      directory_inside_(in_view(plan.working_directory)),
      home_inside_(plan::home_of(policy.environment)),
      hidden_(plan::resolve_deny(policy.filesystem.deny, host), host.files.get()) {
  if (host.home.empty()) return;
  homes_.push_back(host.home);
  if (const auto home = host.files->canonical(host.home)) homes_.push_back(*home);
}

std::string Places::in_view(const std::string& path) const {
  const std::string& files = plan_.private_directory;
  if (files.empty() || !plan::is_within(path, files)) return path;
  std::string deepest;
  std::string target;
  for (const plan::Mount& mount : plan_.mounts) {
    const std::string relative = plan::place_in_private(plan_, mount);
    if (relative.empty()) continue;
    std::string place = plan::joined(files, relative);
    if (!plan::is_within(path, place) || place.size() < deepest.size()) continue;
    deepest = std::move(place);
    target = mount.target;
  }
  return deepest.empty() ? path : target + std::string(plan::below(path, deepest));
}

std::string Places::inside(std::string_view name) const {
  return in_view(plan::normal(plan::joined(plan_.working_directory, name)));
}

std::string Places::outside(std::string_view name) const {
  const std::string path = inside(name);
  if (!host_.home.empty() && plan::is_within(path, home_inside_) && path != home_inside_)
    return plan::normal(host_.home + std::string(plan::below(path, home_inside_)));
  if (name.starts_with('/')) return path;
  // A call may begin in a directory below the session's, which has the same path here.
  const bool is_same = plan::is_within(directory_inside_, host_.working_directory);
  return plan::normal(plan::joined(is_same ? directory_inside_ : host_.working_directory, name));
}

bool Places::is_shown(const std::string& path) const {
  const plan::Mount* const mount = mount_of(plan_, path);
  return mount != nullptr && mount->kind() != MountKind::scratch;
}

bool Places::is_typed(const std::string& path) const {
  return std::ranges::any_of(typed_, [&](const std::string& name) {
    return !name.empty() && name.front() != '-' &&
           plan::normal(plan::joined(host_.working_directory, name)) == path;
  });
}

bool Places::is_dotted_in_home(const std::string& path) const {
  return std::ranges::any_of(homes_, [&](const std::string& home) {
    return plan::is_within(path, home) && has_dotted_part(plan::below(path, home));
  });
}

bool Places::is_never_told(const std::string& path) const {
  return path == "/" || plan::is_within(host_.working_directory, path) ||
         hidden_.covers(path) != nullptr || is_dotted_in_home(path) ||
         std::ranges::any_of(homes_,
                             [&](const std::string& home) { return plan::is_within(home, path); });
}

bool Places::may_be_told(const std::string& path) const {
  const std::string& here = host_.working_directory;
  if (is_never_told(path)) return false;
  // A working directory that is the root, or a home with everything in it, is not a workspace.
  if (here != "/" && plan::is_within(path, here)) return true;
  if (reader_ != Reader::person || is_private(path, host_)) return false;
  const bool is_in_home = std::ranges::any_of(
      homes_, [&](const std::string& home) { return plan::is_within(path, home); });
  return is_in_home || is_typed(path);
}

std::optional<Places::Seen> Places::look(const std::string& path) const {
  const auto place = host_.files->canonical(path);
  if (!place) return std::nullopt;
  const auto facts = host_.files->look(*place);
  if (!facts) return std::nullopt;
  return Seen{.path = *place,
              .type = facts->type,
              .may_be_denied = facts->type == host::FileType::regular && facts->links > 1};
}

std::string Places::not_granted(std::string_view name) const {
  if (name.empty() || name.front() == '-' || host_.working_directory.empty()) return {};
  const std::string path = outside(name);
  if (is_shown(inside(name)) || !may_be_told(path)) return {};
  const auto seen = look(path);
  if (!seen || !is_plain(seen->type) || seen->may_be_denied) return {};
  return seen->path == path || may_be_told(seen->path) ? path : std::string();
}

std::uint64_t Places::copied_when_written(std::string_view name) const {
  const std::string path = inside(name);
  const plan::Mount* const mount = mount_of(plan_, path);
  if (mount == nullptr || mount->kind() != MountKind::overlay || mount->read_only()) return 0;
  const std::string below =
      mount->host_source()->path + std::string(plan::below(path, mount->target));
  if (hidden_.covers(path) != nullptr || hidden_.covers(below) != nullptr) return 0;
  // A link would lead to a file that the overlay does not have.
  if (host_.files->canonical(below).value_or("") != below) return 0;
  const auto facts = host_.files->look(below);
  return facts && facts->type == host::FileType::regular ? facts->size : 0;
}

bool Places::may_be_read(std::string_view name) const {
  constexpr mode_t kByAll = 0444;
  const std::string path = inside(name);
  const plan::Mount* const mount = mount_of(plan_, path);
  const plan::HostSource* const source = mount == nullptr ? nullptr : mount->host_source();
  if (source == nullptr || hidden_.covers(path) != nullptr) return false;
  const std::string below = source->path + std::string(plan::below(path, mount->target));
  if (hidden_.covers(below) != nullptr) return false;
  const auto place = host_.files->canonical(below);
  if (!place) return place.error().errno_value == ENOENT;
  const auto facts = *place == below ? host_.files->look(below) : std::unexpected(Error{});
  return facts && is_plain(facts->type) && (facts->mode & kByAll) == kByAll;
}

/// Also what --read shows under its own name: the program sees that name anyway.
std::string Places::grant_of(const plan::Mount& mount) const {
  const std::string& source = mount.host_source()->path;
  if (mount.origin.file.empty() || plan::is_forbidden(source)) return {};
  if (may_be_told(source)) return source;
  const bool is_read = std::ranges::any_of(
      files_.read, [&mount](const auto& grant) { return grant.origin == mount.origin; });
  const bool is_own_name = host_.files->canonical(mount.target).value_or("") == source;
  const bool is_harmless = !is_never_told(source) && !is_private(source, host_);
  return is_read && is_own_name && is_harmless ? mount.target : std::string();
}

std::optional<Places::ReadOnly> Places::read_only(const std::string& path_inside) const {
  if (hidden_.covers(path_inside) != nullptr) return std::nullopt;
  const plan::Mount* const mount = mount_of(plan_, path_inside);
  if (mount == nullptr) return ReadOnly{};
  if (!mount->read_only() && mount->target == path_inside)
    return ReadOnly{.grant = {}, .target = path_inside, .is_mount = true};
  if (!mount->read_only()) return std::nullopt;
  ReadOnly result{.is_workspace = plan::is_within(path_inside, directory_inside_) &&
                                  plan::is_within(directory_inside_, mount->target),
                  .grant = {},
                  .target = mount->target};
  const plan::HostSource* const source = mount->host_source();
  if (source != nullptr && mount->origin != files_.system.origin) {
    result.granted_by = mount->origin.file;
    result.grant = grant_of(*mount);
  }
  result.is_file = source != nullptr && !source->is_directory;
  return result;
}

}  // namespace sbx::hints
