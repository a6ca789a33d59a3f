#include "spawn/failure.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/message.hpp"
#include "base/obstacle.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "plan/program/misread.hpp"
#include "plan/program/project_environment.hpp"
#include "spawn/faults.hpp"

namespace sbx::spawn {
namespace {

using child::Stage;
using plan::Mount;
using plan::MountKind;

/// Docker confines containers by AppArmor too, and podman says "unmask" for "systempaths".
std::string container_cure() {
  const auto profile = sys::read_file("/proc/self/attr/current", 256);
  const bool confined = profile && profile->contains("docker-default");
  return std::string(
             "in Docker: --security-opt seccomp=unconfined --security-opt "
             "systempaths=unconfined") +
         (confined ? " --security-opt apparmor=unconfined" : "") +
         "; in podman: --security-opt seccomp=unconfined --security-opt unmask=ALL";
}

/// The comment in the profile says where to put it and how to load it.
constexpr const char* kAppArmorCure =
    "install sbx's AppArmor profile (share/sbx/apparmor below the prefix of its installation), or "
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0";

bool setting_is(const char* path, char value) {
  const auto text = sys::read_file(path, 16);
  return text && !text->empty() && (*text)[0] == value;
}

std::string describe_mount(const Mount& mount) {
  const std::string target = "'" + mount.target + "'";
  const std::string access = mount.read_only() ? " read-only" : "";
  switch (mount.kind()) {
    case MountKind::bind:
      return "cannot bind '" + mount.source() + "' at " + target + access;
    case MountKind::overlay:
      return "cannot mount '" + mount.source() + "' at " + target +
             (mount.read_only() ? access : " copy-on-write");
    case MountKind::copy:
      return "cannot make a copy of '" + mount.source() + "' at " + target;
    case MountKind::device:
      return "cannot bind the device '" + mount.source() + "'";
    case MountKind::proc:
      return "cannot mount a /proc of the sandbox's own";
    case MountKind::outer_proc:
      return "cannot show the caller's /proc";
    case MountKind::devpts:
      return "cannot mount a devpts of the sandbox's own";
    case MountKind::mask_file:
    case MountKind::mask_directory:
      return "cannot hide " + target;
    case MountKind::read_only:
      return "cannot make " + target + " read-only";
    case MountKind::directory:
    case MountKind::symlink:
    case MountKind::file:
    case MountKind::scratch:
    case MountKind::pinned:
    case MountKind::content:
      return "cannot make " + target;
  }
  return "cannot make " + target;
}

/// The errors of file systems that can't be an overlay layer: NFS, FUSE, an overlay as upper.
bool cannot_layer(int error) {
  return error == EINVAL || error == EOPNOTSUPP || error == ENODEV || error == ENOSYS ||
         error == EREMOTE;
}

std::string mount_hint(const Mount& mount, int error) {
  if (error == ESTALE)
    return "'" + mount.source() + "' was replaced while sbx was starting: run again";
  if (error == EROFS)
    return "the target does not exist and lies in a directory of the host that sbx does not write "
           "to: "
           "create it, or choose another target";
  if (error == ENOSPC) return "the private disk is full: raise limits.disk and limits.disk_files";
  if (error == ELOOP) return "a part of the path is a symbolic link: write the path it leads to";
  if (error == EOVERFLOW)
    return "the directory holds files of users or groups that the sandbox has no ids for";
  if (mount.kind() == MountKind::proc && error == EPERM)
    return std::string(
               "the host's own /proc is partly hidden, so the kernel refuses a fresh one; ") +
           container_cure();
  if (mount.kind() == MountKind::overlay &&
      (error == EINVAL || error == ENODEV || error == EOPNOTSUPP))
    return "this file system or kernel can't be a layer of overlayfs without root: --workspace "
           "DIR:read-write works on it";
  return "";
}

Error explain_exec(const plan::Plan& plan, int error) {
  Error result{.errno_value = error, .side = Side::sandbox};
  result.message = "cannot run '" + plan.executable + "'";
  if (error == ENOENT) {
    result.kind = ErrorKind::not_found;
    result.code = "command-not-found";
    // What is not on the PATH of a call may be a file that an earlier call made.
    if (!plan.command.empty() && plan.executable == "./" + plan.command.front()) {
      result.message = "no command '" + plan.command.front() +
                       "' on PATH, and no such program in the working directory";
      result.obstacle = obstacle_of(std::exchange(result.errno_value, 0));
      const std::string& line = plan.command.front();
      const std::string meant = plan::meant_form(plan.command, "sbx session exec NAME");
      result.hint =
          line.find_first_of(" \t\n|&;<>") != std::string::npos
              ? "for a shell line: sh -c " + shell_word(line)
          : !meant.empty()
              ? meant
              : "sbx session put NAME FILE brings a file in; sbx session start --read PATH shows a "
                "directory from the start";
      return result;
    }
    const std::string environment = plan::environment_named(plan.executable);
    const bool is_in_session = plan.calls > 0;  // no option of a call shows more
    result.hint =
        environment.empty() && is_in_session
            ? "it, or the loader it names, is not in the session: sbx session put NAME FILE brings "
              "a file in; sbx session start --read PATH shows a directory from the start"
        : environment.empty()
            ? "it, or the loader it names, is not inside the sandbox: grant it with --read PATH"
            : "where there is no environment " + environment + ": python3 -m venv " + environment +
                  " makes it; otherwise --venv " + environment + " shows it";
    return result;
  }
  result.kind = ErrorKind::not_executable;
  result.code = "command-not-executable";
  if (error == EACCES)
    result.hint =
        "a program is a file that may be executed: chmod +x FILE, or name its interpreter with "
        "--lang";
  if (error == E2BIG)
    result.hint = "arguments and environment together are larger than the kernel takes";
  if (error == ENOEXEC)
    result.hint =
        "it is neither a program for this machine nor a script with a #! line: name its "
        "interpreter with --lang";
  return result;
}

Error explain_directory(const plan::Plan& plan, int error) {
  Error result{.kind = ErrorKind::usage,
               .code = "bad-directory",
               .errno_value = error,
               .hint = "sbx session ls NAME lists what is in the session's directory",
               .side = Side::sandbox};
  const std::string shown = "'" + printable(plan.call_directory) + "'";
  switch (error) {
    case ENOENT:
      result.message = "--cwd: there is no directory " + shown + " in the session";
      break;
    case ENOTDIR:
      result.message = "--cwd: " + shown + " is not a directory in the session";
      break;
    case EACCES:
    case EPERM:
      result.message = "--cwd: the session's programs may not enter " + shown;
      result.hint = "its mode keeps them out: chmod u+x on it, in a call";
      break;
    case ELOOP:
      result.message =
          "--cwd: " + shown + " leads through a link of /proc, or through links in a circle";
      result.hint = "name the directory itself";
      break;
    default:
      result.message = "--cwd: the call can't begin in " + shown;
      return result;
  }
  result.obstacle = obstacle_of(error);
  result.errno_value = 0;
  return result;
}

/// A user namespace without privileges inside: AppArmor's restriction (Ubuntu since 23.10), or a
/// filter that allows creating namespaces but nothing in them.
Error explain_no_rights(Error error) {
  error.kind = ErrorKind::host;
  error.code = "no-rights-in-namespace";
  error.message = "this machine makes user namespaces but gives no rights in them";
  error.retry = Retry::without_namespaces;
  error.hint = std::string("AppArmor's restriction: ") + kAppArmorCure;
  if (!setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
    error.hint = std::string("a container's system-call filter is in the way (") +
                 container_cure() + "), or " + error.hint;
  return error;
}

/// True if "/" is a directory of a mount and not its root: in such a chroot no user namespace can
/// be created, user_namespaces(7). Then no mount is listed at "/".
bool in_chroot() {
  const auto text = sys::read_file("/proc/self/mountinfo", std::size_t{4} << 20);
  // "36 35 98:0 /mnt1 /mnt2 rw,noatime": the fifth field is the mount point, proc(5).
  std::string_view left = text ? std::string_view(*text) : std::string_view();
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    std::size_t at = 0;
    for (int field = 0; field < 4 && at != std::string_view::npos; ++field)
      at = line.find(' ', at == 0 ? 0 : at + 1);
    if (at != std::string_view::npos && line.substr(at).starts_with(" / ")) return false;
  }
  return text.has_value() && !text->empty();
}

}  // namespace

Error explain_failure(const plan::Plan& plan, const child::Progress& progress) {
  if (progress.stage == Stage::exec) return explain_exec(plan, progress.error);
  if (progress.stage == Stage::call_directory) return explain_directory(plan, progress.error);
  if (progress.error == ETOOMANYREFS) return sys::descriptors_in_flight();
  Error error{.kind = ErrorKind::setup,
              .code = "setup-" + std::string(stage_name(progress.stage)),
              .errno_value = progress.error};
  error.message = "set-up stage '" + std::string(stage_name(progress.stage)) + "' failed";
  switch (progress.stage) {
    case Stage::make_entry:
    case Stage::bind:
    case Stage::bind_attributes:
    case Stage::veil:
    case Stage::overlay:
    case Stage::device:
    case Stage::proc:
    case Stage::devpts:
    case Stage::mask:
    case Stage::proc_read_only:
      if (progress.index < plan.mounts.size()) {
        const Mount& mount = plan.mounts[progress.index];
        error.message += ": " + describe_mount(mount);
        error.hint = mount_hint(mount, progress.error);
        if (!mount.origin.file.empty()) error.origin = mount.origin;
        if (progress.error == ESTALE) error.code = "changed-during-set-up";
        if (mount.kind() == MountKind::proc && progress.error == EPERM)
          error.retry = Retry::with_outer_proc;
        if (mount.kind() == MountKind::overlay && !mount.read_only() &&
            cannot_layer(progress.error)) {
          error.code = "no-overlay";
          error.retry = Retry::with_copies;
        }
      }
      break;
    case Stage::payload:  // the fork of PID 1 is subject to the same limits as clone3
      if (progress.error == EAGAIN) return explain_clone_failure(EAGAIN);
      break;
    case Stage::limits:
      if (progress.index < plan.process_limits.size())
        error.origin = plan.process_limits[progress.index].origin;
      break;
    case Stage::seccomp:
      if (progress.error != EBUSY) break;
      error.code = "listener-busy";
      error.retry = Retry::without_listener;
      break;
    case Stage::pivot:
      if (progress.error == EINVAL)
        error.hint =
            "the caller's root is not a mount of its own (a chroot or an initramfs): run sbx "
            "outside of it";
      else if (progress.error == EPERM || progress.error == ENOSYS)
        error.hint = filter_in_the_way();  // Docker's refuses it even with CAP_SYS_ADMIN
      if (progress.error == EPERM || progress.error == ENOSYS)
        error.retry = Retry::without_namespaces;
      break;
    // The first stages that need a privilege; their order does not matter. A filter may refuse the
    // host name alone: if the cause is another one, the next attempt tells it.
    case Stage::hostname:
      if (progress.error != EPERM && progress.error != EACCES) break;
      error = explain_no_rights(error);
      error.retry = Retry::keeps_host_name;
      break;
    case Stage::gateway:
    case Stage::own_network:
    case Stage::loopback:
    case Stage::private_mounts:
    case Stage::root:
      if (progress.error == EPERM || progress.error == EACCES) return explain_no_rights(error);
      if (progress.error == ENOSPC)
        error.hint = "too many namespaces are in use: see the limits in /proc/sys/user";
      break;
    default:
      break;
  }
  return error;
}

std::string filter_in_the_way() {
  return std::string(
             "the system-call filter of a container or of another sandbox is in the way; ") +
         container_cure();
}

Error explain_clone_failure(int errno_value) {
  // No descriptor is left for the pidfd: the namespaces are not the problem.
  if (errno_value == EMFILE || errno_value == ENFILE)
    return {.kind = ErrorKind::setup,
            .code = "no-pidfd",
            .message = "cannot start the sandbox",
            .errno_value = errno_value,
            .hint = errno_value == ENFILE
                        ? "the whole machine's limit is met: /proc/sys/fs/file-max"
                        : ""};
  if (errno_value == EAGAIN)  // RLIMIT_NPROC, pids.max or the machine's own limit, clone(2)
    return {.kind = ErrorKind::host,
            .code = "cannot-clone",
            .message = "no more processes can be started",
            .errno_value = errno_value,
            .hint = "end some, or raise the limit: ulimit -u, or pids.max of the cgroup"};
  Error error{.kind = ErrorKind::host,
              .code = "no-user-namespace",
              .message = "this machine refuses to make user namespaces",
              .errno_value = errno_value};
  // A refusal, never a shortage: else whoever exhausts namespaces chooses how others are walled
  // off.
  if (errno_value == ENOSYS || errno_value == EPERM || errno_value == EACCES ||
      errno_value == EINVAL ||
      (errno_value == ENOSPC && setting_is("/proc/sys/user/max_user_namespaces", '0')))
    error.retry = Retry::without_namespaces;
  // No kernel with user namespaces returns this, whatever its settings; Docker's filter does for
  // clone3, and so does sbx's own.
  if (errno_value == ENOSYS)
    error.hint = filter_in_the_way();
  else if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
    error.hint = "sysctl kernel.unprivileged_userns_clone=1";
  else if (setting_is("/proc/sys/user/max_user_namespaces", '0'))
    error.hint = "sysctl user.max_user_namespaces=15000";
  else if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
    error.hint = kAppArmorCure;
  else if (errno_value == EINVAL)  // the flags are right on every kernel of Linux since 5.7
    error.hint =
        "this is not Linux's own kernel: gVisor (runsc) makes no such namespaces; run the "
        "container with another runtime, in Docker --runtime runc";
  else if (errno_value == EPERM && in_chroot())
    error.hint = "sbx was started in a chroot, where no user namespace can be made: run it outside";
  else if (errno_value == EPERM)
    error.hint = std::string("a container's system-call filter is in the way; ") + container_cure();
  else if (errno_value == ENOSPC || errno_value == EUSERS)
    error.hint =
        "too many namespaces are in use, or they are nested too deep: see the limits in "
        "/proc/sys/user";
  return error;
}

}  // namespace sbx::spawn
