#include "spawn/pack.hpp"

#include <algorithm>
#include <map>
#include <type_traits>
#include <variant>

#include "plan/files/path_text.hpp"
#include "plan/files/reach.hpp"
#include "spawn/rights.hpp"

namespace sbx::spawn {
namespace {

using plan::Mount;
using plan::MountKind;

using Program = child::Program;

/// Targets are looked up beneath the new root's descriptor.
std::string_view without_slash(std::string_view path) {
  return path.starts_with('/') ? path.substr(1) : path;
}

void pack_content(Block& block, Placed<child::Step> step, std::string_view content) {
  if (content.empty()) return;
  block.text(step, &child::Step::content, content);
  block[step].content_size = content.size();
}

void pack_veils(Block& block, Placed<child::Step> step, const std::vector<plan::Veil>& veils) {
  if (veils.empty()) return;
  const auto first = block.place<child::Veil>(veils.size());
  block.link(step, &child::Step::veils, first);
  block[step].veil_count = veils.size();
  for (std::size_t i = 0; i < veils.size(); ++i) {
    block[first.at(i)].kind = static_cast<child::VeilKind>(veils[i].kind);
    block[first.at(i)].content_size = veils[i].content.size();
    block.text(first.at(i), &child::Veil::path, veils[i].path);
    block.text(first.at(i), &child::Veil::content, veils[i].content);
  }
}

/// Names of one directory share its text.
void pack_linked(Block& block, Placed<child::Step> step,
                 const std::vector<plan::LinkedFile>& files) {
  std::size_t count = 0;
  for (const plan::LinkedFile& file : files) count += file.names.size();
  if (count == 0) return;
  const auto first = block.place<child::LinkedName>(count);
  block.link(step, &child::Step::linked, first);
  block[step].linked_count = count;
  std::map<std::string_view, Placed<char>> directories;
  std::size_t i = 0;
  for (const plan::LinkedFile& file : files)
    for (const std::string_view path : file.names) {
      const auto slash = path.rfind('/');
      const auto directory = slash == path.npos ? "." : path.substr(0, slash);
      auto known = directories.find(directory);
      if (known == directories.end())
        known = directories.emplace(directory, block.copy(directory)).first;
      const auto place = first.at(i++);
      block.link(place, &child::LinkedName::directory, known->second);
      block.text(place, &child::LinkedName::name, path.substr(slash == path.npos ? 0 : slash + 1));
      block[place].inode = file.file.inode;
      block[place].is_first = path == file.names.front();
    }
}

/// What a step has by its kind: a kind that is forgotten does not compile.
struct PayloadPacker {
  Block& block;
  Placed<child::Step> step;
  bool privileged;

  void operator()(const plan::mount::Directory& directory) const {
    block[step].mode = directory.mode;
  }
  void operator()(const plan::mount::Symlink&) const {}  // the text is the source
  void operator()(const plan::mount::File& file) const {
    block[step].mode = file.mode;
    pack_content(block, step, file.content);
  }
  void operator()(const plan::mount::Bind& bind) const {
    pack_source(bind.source);
    // For an ordinary user submounts are locked to their parent: cloning it without them fails with
    // EINVAL, mount_namespaces(7).
    block[step].recursive = bind.recursive || (bind.source.is_directory && !privileged);
  }
  void operator()(const plan::mount::Layered& layered) const {
    pack_source(layered.source);
    block[step].disk_place = layered.disk_place;
    pack_veils(block, step, layered.veils);
    pack_linked(block, step, layered.linked);
  }
  void operator()(const plan::mount::Device& device) const {
    block[step].device_number = device.number;
  }
  void operator()(const plan::mount::Scratch&) const {}
  void operator()(const plan::mount::Content& content) const {
    pack_content(block, step, content.text);
  }
  template <class Kind>
    requires std::is_empty_v<Kind>
  void operator()(const Kind&) const {}

 private:
  void pack_source(const plan::HostSource& source) const {
    block[step].is_directory = source.is_directory;
    block[step].device = source.device;
    block[step].inode = source.inode;
  }
};

void pack_step(Block& block, Placed<child::Step> place, const Mount& mount, const Source& source,
               bool privileged) {
  child::Step& step = block[place];
  step.kind = mount.kind();
  step.mode = 0755;
  step.read_only = mount.read_only();
  step.attributes = mount_attributes(mount.rights);
  block.text(place, &child::Step::source, mount.source());
  block.text(place, &child::Step::target, without_slash(mount.target));
  if (!source.by_content) return std::visit(PayloadPacker{block, place, privileged}, mount.payload);
  block[place].kind = MountKind::file;
  block[place].mode = 0555;
  pack_content(block, place, source.content);
}

/// What belongs to a PID namespace, or could lead into another call: each call mounts its own.
bool is_renewed(const Mount& mount) {
  if (mount.kind() == MountKind::outer_proc) return false;
  return mount.target == "/proc" || mount.target.starts_with("/proc/") ||
         mount.target == "/dev/pts";
}

void pack_steps(Block& block, Placed<Program> program, const plan::Plan& plan,
                const PackRequest& request) {
  static const Source kNoSource;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < plan.mounts.size(); ++i)
    if (request.role != child::Role::call || is_renewed(plan.mounts[i])) chosen.push_back(i);
  const auto first = block.place<child::Step>(chosen.size());
  block.link(program, &Program::steps, first);
  block[program].step_count = chosen.size();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::size_t number = chosen[i];
    pack_step(block, first.at(i), plan.mounts[number],
              request.role == child::Role::call ? kNoSource : request.sources[number],
              plan.identity.privileged);
    block[first.at(i)].number = static_cast<std::uint32_t>(number);
  }
}

void pack_landlock(Block& block, Placed<Program> program, const plan::Plan& plan) {
  block[program].landlock_abi = plan.landlock_abi;
  block[program].landlock_files = plan.landlock_files;
  const std::vector<LandlockRule> rules = landlock_rules(plan);
  if (rules.empty()) return;
  const auto first = block.place<child::LandlockRule>(rules.size());
  block.link(program, &Program::landlock_rules, first);
  block[program].landlock_rule_count = rules.size();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    block[first.at(i)].rights = rules[i].rights;
    block[first.at(i)].is_of_disk =
        !plan.private_directory.empty() && plan::is_within(rules[i].path, plan.private_directory);
    block.text(first.at(i), &child::LandlockRule::path, rules[i].path);
  }
}

static_assert(static_cast<int>(plan::VeilKind::content) ==
              static_cast<int>(child::VeilKind::content));

/// Plain objects, as they are.
template <class T, class Member>
void pack_array(Block& block, Placed<Program> program, child::Relative<Member> Program::* member,
                const std::vector<T>& objects) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (objects.empty()) return;
  const auto first = block.place<T>(objects.size());
  std::memcpy(&block[first], objects.data(), objects.size() * sizeof(T));
  block.link(program, member, first);
}

void pack_words(Block& block, Placed<child::Words> place, const std::vector<std::string>& words) {
  block[place].count = words.size();
  const auto table = block.place<char*>(words.size() + 1);
  block.link(place, &child::Words::table, table);
  std::string texts;
  for (const std::string& word : words) texts.append(word.c_str(), word.size() + 1);
  block.text(place, &child::Words::texts, texts);
}

/// A member of the Program as an object of its own.
Placed<child::Words> member(Block& block, Placed<Program> program, child::Words Program::* words) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&block[program]);
  const auto* const place = reinterpret_cast<const std::byte*>(&(block[program].*words));
  return {program.offset + static_cast<std::size_t>(place - begin)};
}

void pack_affinity(Program& program, const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  program.has_affinity = true;
  CPU_ZERO(&program.affinity);
  for (const int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), &program.affinity);
}

void pack_disk(Block& block, Placed<Program> program, const plan::Plan& plan,
               const DiskPlace* directory) {
  block.text(program, &Program::scratch_size, std::to_string(plan.budgets.disk.count));
  block.text(program, &Program::scratch_inodes, std::to_string(plan.budgets.disk_files));
  if (directory == nullptr) return;
  block.text(program, &Program::scratch_directory, directory->path);
  block[program].scratch_device = directory->device;
  block[program].scratch_inode = directory->inode;
}

void pack_facts(Program& program, const plan::Plan& plan, const PackRequest& request) {
  program.role = request.role;
  program.tier = plan.tier;
  program.change_ids = plan.identity.privileged;
  program.has_keeper = plan.identity.is_outside_namespaces();
  program.uid = plan.identity.uid;
  program.gid = plan.identity.gid;
  if (plan.identity.own_uids) {
    SBX_ASSERT(request.identity != nullptr && request.identity->keeper != 0);
    program.uid = request.identity->uid_on_host;
    program.gid = request.identity->gid_on_host;
    program.keeper = request.identity->keeper;
  }
  pack_affinity(program, plan.affinity);
  program.own_network = plan.network.own_namespace;
  program.gateway = request.network.gateway;
  program.hand_space = request.network.space;
  program.socket_count = request.network.sockets.size();
  // RLIMIT_NPROC refuses first there, and nothing counts its refusals (plan/limits.cpp).
  program.asks_before_reaping =
      (plan.control_group.processes == host::Means::none || plan.calls > 0) &&
      plan.budgets.processes > 0;
  program.outer_proc = plan::shows_outer_proc(plan.mounts);
  program.list_processes = request.list_processes && !program.outer_proc;
  program.keeps_host_name = plan.keeps_host_name;
  program.waits_for_copies = request.waits_for_copies;
  program.interactive = plan.interactive;
  program.umask = plan.umask;
  program.window = request.window;
  program.limit_count = plan.process_limits.size();
  program.filter_length = static_cast<std::uint16_t>(plan.filter.program.size());
  program.notifies = plan.filter.notifies;
}

std::vector<child::Limit> limits_of(const plan::Plan& plan) {
  std::vector<child::Limit> limits;
  for (const plan::ProcessLimit& limit : plan.process_limits)
    limits.push_back({limit.resource, limit.soft, limit.hard});
  return limits;
}

}  // namespace

Block pack(const plan::Plan& plan, const PackRequest& request) {
  SBX_ASSERT(request.network.sockets.size() <= kMostRequests);
  Block block;
  const auto program = block.place<Program>();
  pack_facts(block[program], plan, request);
  pack_array(block, program, &Program::sockets, request.network.sockets);
  pack_disk(block, program, plan, request.disk);
  pack_steps(block, program, plan, request);
  block.text(program, &Program::working_directory, plan.working_directory);
  if (!plan.call_directory.empty())
    block.text(program, &Program::call_directory, plan.call_directory);
  pack_array(block, program, &Program::limits, limits_of(plan));
  pack_landlock(block, program, plan);
  pack_array(block, program, &Program::filter, plan.filter.program);
  block.text(program, &Program::executable, plan.executable);
  pack_words(block, member(block, program, &Program::argv), plan.command);
  pack_words(block, member(block, program, &Program::envp), plan.environment);
  if (plan.first) {
    block.text(program, &Program::first, plan.first->path);
    pack_words(block, member(block, program, &Program::first_argv), plan.first->words);
  }
  return block;
}

const Program& program_of(const Block& block) {
  return block[Placed<Program>{}];
}

}  // namespace sbx::spawn
