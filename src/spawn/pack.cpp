#include "spawn/pack.hpp"

#include <algorithm>

#include "spawn/landlock.hpp"

namespace sbx::spawn {
namespace {

using plan::Mount;
using plan::MountKind;
namespace landlock = child::landlock;

/// Targets are resolved relative to the new root's descriptor.
const char* without_slash(const std::string& path) {
  return path.c_str() + (path.starts_with('/') ? 1 : 0);
}

child::Step pack_step(const Mount& mount, const Source& source, bool privileged) {
  child::Step step{};
  step.kind = mount.kind;
  step.is_folder = mount.is_folder;
  // For an ordinary user submounts are locked to their parent: cloning it without them fails with EINVAL,
  // mount_namespaces(7).
  step.recursive =
      mount.recursive || (mount.kind == MountKind::bind && mount.is_folder && !privileged);
  step.read_only = mount.read_only;
  step.tree = source.tree.valid() ? source.tree.get() : -1;
  step.device = mount.device;
  step.inode = mount.inode;
  step.device_number = mount.device_number;
  step.attributes = mount_attributes(mount);
  step.mode = mount.mode;
  step.source = mount.source.c_str();
  step.target = without_slash(mount.target);
  step.content = mount.content.data();
  step.content_size = mount.content.size();
  if (source.by_content) {
    step.kind = MountKind::file;
    step.mode = 0555;
    step.content = source.content.data();
    step.content_size = source.content.size();
  }
  return step;
}

/// Rights of writable mounts; everything else has the rights of the rule on "/".
std::uint64_t rights_of(const Mount& mount, std::uint64_t handled) {
  constexpr std::uint64_t kDevice = landlock::write_file | landlock::read_file |
                                    landlock::read_dir | landlock::truncate | landlock::ioctl_dev;
  switch (mount.kind) {
    case MountKind::device:
    case MountKind::devpts:
      return kDevice & handled;
    case MountKind::proc:
      return (kDevice | landlock::execute) & handled;
    case MountKind::scratch:
    case MountKind::bind:
    case MountKind::overlay:
    case MountKind::copy: {
      std::uint64_t none = landlock::make_char | landlock::make_block;
      if (!mount.special) none |= landlock::make_fifo | landlock::make_sock;
      return mount.read_only ? 0 : handled & ~none;
    }
    default:
      return 0;
  }
}

void pack_landlock(const plan::Plan& plan, Packed& packed) {
  child::Program& program = packed.program;
  program.landlock_abi = plan.landlock_abi;
  program.landlock_files = plan.landlock_files;
  if (plan.landlock_abi == 0 || !plan.landlock_files) return;
  const std::uint64_t handled = landlock::file_rights(plan.landlock_abi);
  packed.landlock_rules.push_back(
      {"/", landlock::execute | landlock::read_file | landlock::read_dir});
  bool devices = false;
  for (const Mount& mount : plan.mounts) {
    std::uint64_t rights = rights_of(mount, handled);
    if (rights == 0) continue;
    if (mount.kind == MountKind::device && mount.target.starts_with("/dev/")) {
      if (!devices) packed.landlock_rules.push_back({"/dev", rights});
      devices = true;
      continue;
    }
    if (mount.kind == MountKind::bind && !mount.is_folder) rights &= landlock::kRightsOfFile;
    packed.landlock_rules.push_back({mount.target.c_str(), rights});
  }
}

static_assert(static_cast<int>(plan::VeilKind::content) ==
              static_cast<int>(child::VeilKind::content));

/// All veils are in one array; each step points into it.
void pack_veils(const plan::Plan& plan, Packed& packed) {
  std::size_t count = 0;
  for (const Mount& mount : plan.mounts) count += mount.veils.size();
  packed.veils.reserve(count);  // the steps point into it
  for (std::size_t i = 0; i < plan.mounts.size(); ++i) {
    packed.steps[i].veils = packed.veils.data() + packed.veils.size();
    packed.steps[i].veil_count = plan.mounts[i].veils.size();
    for (const plan::Veil& veil : plan.mounts[i].veils)
      packed.veils.push_back({static_cast<child::VeilKind>(veil.kind), veil.path.c_str(),
                              veil.content.data(), veil.content.size()});
  }
}

void pack_strings(const std::vector<std::string>& strings, std::vector<char*>& pointers) {
  pointers.reserve(strings.size() + 1);
  // execve(2) doesn't modify its arguments; its prototype only lacks the const
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
}

}  // namespace

void pack(const plan::Plan& plan, const NetworkRequest& network, const std::vector<Source>& sources,
          Packed& packed) {
  SBX_ASSERT(network.sockets.size() <= kMostWishes);
  child::Program& program = packed.program;
  packed.steps.reserve(plan.mounts.size());
  for (std::size_t i = 0; i < plan.mounts.size(); ++i)
    packed.steps.push_back(pack_step(plan.mounts[i], sources[i], plan.identity.privileged));
  pack_veils(plan, packed);
  for (const plan::ProcessLimit& limit : plan.process_limits)
    packed.limits.push_back({limit.resource, limit.soft, limit.hard});
  pack_landlock(plan, packed);
  pack_strings(plan.command, packed.argv);
  pack_strings(plan.environment, packed.envp);
  packed.filter = plan.filter.program;
  packed.scratch_size = std::to_string(plan.budgets.disk.count);
  packed.scratch_inodes = std::to_string(plan.budgets.disk_files);
  if (!plan.budgets.affinity.empty()) {
    CPU_ZERO(&packed.affinity);
    for (const int cpu : plan.budgets.affinity)
      CPU_SET(static_cast<unsigned>(cpu), &packed.affinity);
    program.affinity = &packed.affinity;
  }

  program.change_ids = plan.identity.privileged;
  program.uid = plan.identity.uid;
  program.gid = plan.identity.gid;
  program.own_network = plan.network.own_namespace;
  program.gateway = network.gateway;
  program.hand_space = network.space;
  program.sockets = network.sockets.data();
  program.socket_count = network.sockets.size();
  program.scratch_size = packed.scratch_size.c_str();
  program.scratch_inodes = packed.scratch_inodes.c_str();
  program.scratch_tree = -1;
  program.steps = packed.steps.data();
  program.step_count = packed.steps.size();
  program.interactive = plan.interactive;
  program.working_directory = plan.working_directory.c_str();
  program.limits = packed.limits.data();
  program.limit_count = packed.limits.size();
  program.landlock_rules = packed.landlock_rules.data();
  program.landlock_rule_count = packed.landlock_rules.size();
  program.filter = {static_cast<unsigned short>(packed.filter.size()), packed.filter.data()};
  program.notifies = plan.filter.notifies;
  program.executable = plan.executable.c_str();
  program.argv = packed.argv.data();
  program.envp = packed.envp.data();
  program.terminal_master = program.terminal_slave = program.scratch = program.processes =
      program.listener = -1;
}

}  // namespace sbx::spawn
