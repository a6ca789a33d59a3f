#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "doctor/doctor.hpp"
#include "doctor/probes.hpp"
#include "host/process_view.hpp"
#include "plan/enforcement.hpp"
#include "run/setup_errors.hpp"

namespace sbx::doctor {
namespace {

std::string errno_words(const Asked& asked) {
  if (!asked) return "the process that asked was killed";
  return ::strerrordesc_np(asked->error);
}

bool worked(const Asked& asked) {
  return asked && asked->error == 0;
}

Finding missing(std::string name, std::string fact, std::string consequence, std::string cure) {
  return {.name = std::move(name),
          .state = State::missing,
          .fact = std::move(fact),
          .consequence = std::move(consequence),
          .cure = std::move(cure)};
}

/// The message and fix of a run that fails this way.
Error error_of_run(const Asked& asked) {
  if (!asked || asked->step == kClone) return run::no_namespaces(asked ? asked->error : EPERM);
  return asked->step == kRoot ? run::no_root(asked->error) : run::no_private_mounts(asked->error);
}

Finding architecture(const host::Host& host) {
  utsname names{};
  ::uname(&names);
  Finding finding{
      .name = "architecture",
      .fact = fmt::format("{}, pages of {} KiB", names.machine, ::sysconf(_SC_PAGESIZE) / 1024)};
  if (!host.emulated) return finding;
  return missing(finding.name, finding.fact + ", emulated program by program (qemu-user)",
                 "nothing can be run",
                 "use the build of sbx for the machine's own architecture, or a virtual machine");
}

Finding namespaces(const Asked& asked) {
  if (worked(asked))
    return {.name = "user namespaces", .fact = "user, mount, pid, net, ipc, uts and cgroup"};
  const Error error = error_of_run(asked);
  // Its last line names another way to run.
  return missing("user namespaces", error.text(), "nothing can be run in them",
                 error.hint.substr(0, error.hint.find('\n')));
}

/// For features that can only be tested inside the namespaces.
Finding unknown(std::string name) {
  return missing(std::move(name), "can't be asked without user namespaces", "nothing can be run",
                 "see user namespaces");
}

Finding procfs(const host::Host& host) {
  const Asked asked = ask_procfs();
  if (worked(asked))
    return {.name = "procfs",
            .fact = host::lists_processes()
                        ? "a sandbox can have its own"
                        : "a sandbox can have its own, through which budgets are polled: /proc "
                          "hides processes"};
  const Error error = run::no_procfs(asked ? asked->error : EPERM);
  if (error.retry == Retry::none || host.landlock_abi == 0 ||
      host::hides_processes(*host.files).value_or(true))
    return missing("procfs", error.text(), "nothing can be run", error.hint);
  return {.name = "procfs",
          .state = State::weaker,
          .fact = "parts of /proc are hidden here, so the kernel refuses a fresh one",
          .consequence =
              "a program sees a few files of this /proc, behind Landlock; ps, top and "
              "/proc/self don't work",
          .cure = error.hint};
}

Finding filter() {
  const Asked asked = ask_filter();
  if (worked(asked)) return {.name = "seccomp", .fact = "filters can be installed"};
  return missing("seccomp", errno_words(asked), "nothing can be run",
                 "a kernel with CONFIG_SECCOMP_FILTER; in a container: --security-opt "
                 "seccomp=unconfined");
}

Finding listener() {
  const Asked asked = ask_listener();
  if (worked(asked)) return {.name = "seccomp listener", .fact = "refused calls get a name"};
  const bool busy = asked && asked->error == EBUSY;
  return {.name = "seccomp listener",
          .state = State::weaker,
          .fact = busy ? "a listener outside of sbx is in the way" : errno_words(asked),
          .consequence =
              "refused calls fail without a name (syscalls.named), and "
              "syscalls.denied = \"kill\" is an error",
          .cure = busy ? "run sbx outside of that container manager" : ""};
}

Finding landlock(const host::Host& host) {
  const Asked asked = ask_landlock();
  if (!worked(asked) || host.landlock_abi == 0)
    return {.name = "Landlock",
            .state = State::weaker,
            .fact = errno_words(asked),
            .consequence = "mounts are the only wall around files",
            .cure = "boot with landlock among the names of lsm="};
  Finding finding{.name = "Landlock", .fact = fmt::format("ABI {}", host.landlock_abi)};
  if (host.landlock_abi >= plan::kLandlockScopes) return finding;
  finding.state = State::weaker;
  finding.consequence = fmt::format(
      "no scopes (they came with ABI {}): under network.mode = \"host\" socket(AF_UNIX) is refused",
      plan::kLandlockScopes);
  finding.cure = "a newer kernel";
  return finding;
}

Finding overlay() {
  const Asked asked = ask_overlay();
  const Asked attributes = ask_tmpfs_attributes();
  if (worked(asked) && worked(attributes))
    return {.name = "overlayfs", .fact = "copy-on-write on the private tmpfs"};
  if (worked(asked))
    return {.name = "overlayfs",
            .state = State::weaker,
            .fact = "this kernel's tmpfs has no user.* attributes",
            .consequence = "what is written over a workspace lies in a directory of the state home",
            .cure = "a newer kernel"};
  return missing("overlayfs", errno_words(asked),
                 "directories can't be granted read-only or copy-on-write",
                 "load the module: modprobe overlay");
}

Finding veth() {
  const Asked asked = ask_veth();
  if (worked(asked)) return {.name = "veth", .fact = "a network of the sandbox's own can be made"};
  return missing("veth", errno_words(asked), "network.mode = \"allow-list\" can't be enforced",
                 "load the module: modprobe veth");
}

Finding idmapped_mounts(const host::Host& host) {
  if (!host.privileged)
    return {.name = "idmapped mounts",
            .fact = host.uid == 0 ? "not needed: root has no CAP_SYS_ADMIN here"
                                  : "not needed: sbx runs as an ordinary user"};
  const Asked asked = ask_idmapped_mount();
  if (worked(asked))
    return {.name = "idmapped mounts", .fact = "work on this directory's file system"};
  return {.name = "idmapped mounts",
          .state = State::weaker,
          .fact = fmt::format("this directory's file system can't: {}", errno_words(asked)),
          .consequence = "a grant here that the sandbox's uid can't read is copied or refused",
          .cure = "work on another file system, or run sbx as an ordinary user"};
}

Finding groups(const host::Host& host) {
  std::string list;
  for (const gid_t group : host.groups)
    if (group != host.gid) list += (list.empty() ? "" : ", ") + std::to_string(group);
  if (host.privileged || list.empty())
    return {.name = "supplementary groups",
            .fact = host.privileged ? "dropped" : "the caller has none"};
  return {.name = "supplementary groups",
          .state = State::weaker,
          .fact = fmt::format("an ordinary user can't drop them: {}", list),
          .consequence = "in granted directories the program may use what these groups may",
          .cure = "run sbx from an account without them"};
}

}  // namespace

std::vector<Finding> examine_machine(const host::Host& host) {
  if (host.emulated) return {architecture(host)};
  const Asked asked = ask_namespaces();
  const bool inside = worked(asked);
  return {architecture(host),
          namespaces(asked),
          inside ? procfs(host) : unknown("procfs"),
          filter(),
          listener(),
          landlock(host),
          inside ? overlay() : unknown("overlayfs"),
          inside ? veth() : unknown("veth"),
          idmapped_mounts(host),
          groups(host)};
}

std::vector<Finding> examine_isolation(const std::vector<Finding>& machine, bool has_own_uid,
                                       const std::function<Finding()>& try_landlock) {
  const auto found = [&](std::string_view name) {
    return *std::ranges::find(machine, name, &Finding::name);
  };
  const bool has_namespaces = found("user namespaces").state == State::ok;
  const State procfs = has_namespaces ? found("procfs").state : State::missing;
  const std::string refused =
      has_namespaces ? "no procfs can be mounted: see procfs" : "see user namespaces";
  if (procfs == State::ok)
    return {{.name = "namespaces", .fact = "with a /proc of the sandbox's own"}};
  std::vector<Finding> steps = {missing("namespaces", refused, "", "")};
  if (procfs == State::weaker) {
    steps.push_back({.name = "shielded /proc",
                     .state = State::weaker,
                     .fact = "namespaces, and a few files of the caller's /proc behind Landlock"});
    return steps;
  }
  steps.push_back(missing("shielded /proc", refused, "", ""));
  Finding landlock = try_landlock();
  landlock.name = "landlock";
  landlock.degraded.clear();
  if (landlock.state == State::missing) {
    landlock.consequence = "nothing can be run";
  } else {
    landlock.state = State::weaker;
    landlock.fact = std::string(has_own_uid ? "a uid of its own" : "the caller's own uid") +
                    ", and Landlock around the machine's own files";
    landlock.consequence =
        "no sessions, cells or sbx mcp; sbx-security(7) says what else it does not hold";
    landlock.cure = "ask for it: --isolation auto, or isolation = \"auto\" in config.toml";
  }
  steps.push_back(std::move(landlock));
  return steps;
}

std::string_view state_name(State state) {
  constexpr auto kNames = std::to_array<std::string_view>({"ok", "weaker", "missing"});
  return kNames.at(static_cast<std::size_t>(state));
}

}  // namespace sbx::doctor
