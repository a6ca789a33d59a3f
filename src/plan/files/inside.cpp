#include "plan/files/inside.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/private_disk.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

constexpr std::array<const char*, 6> kTopLevel = {"/bin",   "/sbin",  "/lib",
                                                  "/lib32", "/lib64", "/libx32"};

/// A system directory at its own path: bound, or the link that a merged /usr has there.
Status add_system_directory(const host::Host& host, const std::string& root, const char* place,
                            const Origin& origin, std::vector<Mount>& steps, View& view) {
  const std::string path = root + place;
  const auto facts = host.files->look(path);
  if (!facts) return {};  // a missing /lib32 is normal
  if (facts->type == host::FileType::symlink) {
    std::string text = SBX_TRY(host.files->link_target(path));
    view.add_link(place, text);
    steps.push_back(symlink_step(std::move(text), place));
    return {};
  }
  if (facts->type != host::FileType::directory) return {};
  Mount step = bind_step(path, place, *facts);
  step.host_source()->needs_idmap = host.privileged && !others_may_use(*facts);
  step.origin = origin;
  steps.push_back(std::move(step));
  view.add({.source = path, .target = place, .system = true});
  return {};
}

struct Device {
  const char* path;
  unsigned major;
  unsigned minor;
};
constexpr std::array<Device, 5> kDevices = {{{"/dev/null", 1, 3},
                                             {"/dev/zero", 1, 5},
                                             {"/dev/full", 1, 7},
                                             {"/dev/random", 1, 8},
                                             {"/dev/urandom", 1, 9}}};

/// Devices can be used; nothing can be made beside them.
constexpr Rights kOfDevices{.execute = false, .write = true};

Mount device_step(const Device& device) {
  const auto number = static_cast<std::uint32_t>(makedev(device.major, device.minor));
  return {.target = device.path,
          .payload = mount::Device{.path = device.path, .number = number},
          .rights = kOfDevices};
}

// Files that an ordinary uid could read, or that reveal facts about the host; the rest is 0400 root
// and unreadable in the sandbox.
constexpr std::array<const char*, 9> kMaskedFiles = {
    "/proc/keys",  "/proc/key-users",     "/proc/timer_list", "/proc/kallsyms",   "/proc/cmdline",
    "/proc/kcore", "/proc/sysrq-trigger", "/proc/kmsg",       "/proc/sched_debug"};
constexpr std::array<const char*, 5> kMaskedDirectories = {"/proc/fs", "/proc/irq", "/proc/bus",
                                                           "/proc/acpi", "/proc/scsi"};

}  // namespace

Result<std::vector<Mount>> system_steps(const host::Host& host, const std::string& system_root,
                                        const Origin& origin, View& view) {
  std::vector<Mount> steps;
  SBX_TRY(add_system_directory(host, system_root, "/usr", origin, steps, view));
  if (steps.empty())
    return fail(
        {.kind = ErrorKind::policy,
         .code = "no-system",
         .message = "'" + (system_root.empty() ? "/" : system_root) + "' holds no directory 'usr'",
         .origin = origin,
         .hint = "filesystem.system is \"host\" or a directory that holds a root file system"});
  for (const char* place : kTopLevel)
    SBX_TRY(add_system_directory(host, system_root, place, origin, steps, view));
  return steps;
}

std::vector<Mount> kernel_steps(bool interactive) {
  std::vector<Mount> steps;
  steps.push_back({.target = "/proc", .payload = mount::Proc{}, .rights = {.write = true}});
  for (const char* path : kMaskedFiles) steps.push_back(plain_step(mount::MaskFile{}, path));
  for (const char* path : kMaskedDirectories)
    steps.push_back(plain_step(mount::MaskDirectory{}, path));
  steps.push_back(plain_step(mount::ReadOnly{}, "/proc/sys"));
  steps.back().rights = {};

  steps.push_back(directory_step("/dev"));
  for (const Device& device : kDevices) steps.push_back(device_step(device));
  if (interactive) steps.push_back(device_step({"/dev/tty", 5, 0}));
  steps.push_back(plain_step(mount::Scratch{private_disk::kShm}, "/dev/shm"));
  steps.push_back({.target = "/dev/pts", .payload = mount::Devpts{}, .rights = kOfDevices});
  steps.push_back(symlink_step("pts/ptmx", "/dev/ptmx"));
  steps.push_back(symlink_step("/proc/self/fd", "/dev/fd"));
  steps.push_back(symlink_step("/proc/self/fd/0", "/dev/stdin"));
  steps.push_back(symlink_step("/proc/self/fd/1", "/dev/stdout"));
  steps.push_back(symlink_step("/proc/self/fd/2", "/dev/stderr"));
  return steps;
}

std::string home_of(const policy::Environment& environment) {
  return "/home/" + environment.user.value;
}

std::vector<Mount> private_steps(const std::string& home) {
  std::vector<Mount> steps;
  steps.push_back(plain_step(mount::Scratch{private_disk::kTmp}, "/tmp"));
  steps.push_back(plain_step(mount::Scratch{private_disk::kHome}, home));
  steps.push_back(directory_step("/run"));
  steps.push_back(directory_step("/var"));
  steps.push_back(symlink_step("/tmp", "/var/tmp"));
  steps.push_back(symlink_step("/run", "/var/run"));
  return steps;
}

void join_home(std::vector<Mount>& view_steps, std::vector<Mount>& more) {
  const auto home = std::ranges::find(view_steps, std::string(private_disk::kHome), &Mount::source);
  const auto workspace = std::ranges::find_if(more, [&](const Mount& step) {
    return step.kind() == MountKind::scratch && home != view_steps.end() &&
           step.target == home->target;
  });
  if (workspace == more.end()) return;
  *home = std::move(*workspace);
  more.erase(workspace);
}

void make_room(std::vector<Mount>& view_steps, const std::vector<Mount>& more) {
  for (const Mount& step : more) {
    std::erase_if(view_steps, [&](const Mount& present) {
      return present.target == step.target &&
             (present.kind() == MountKind::symlink || present.kind() == MountKind::file);
    });
    for (Mount& present : view_steps) {
      if (present.kind() != MountKind::symlink || !is_within(step.target, present.target)) continue;
      present = present.target == "/var/tmp"
                    ? plain_step(mount::Scratch{private_disk::kTmp}, present.target)
                    : directory_step(present.target);
    }
  }
}

}  // namespace sbx::plan
