#include "spawn/failure.hpp"

#include <cerrno>
#include <string>

#include "base/sys.hpp"
#include "spawn/faults.hpp"
#include "spawn/spawn.hpp"

namespace sbx::spawn {
namespace {

using child::Stage;
using plan::Mount;
using plan::MountKind;

constexpr const char* kContainerCure =
    "in Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined";

bool setting_is(const char* path, char value) {
  const auto text = sys::read_file(path, 16);
  return text && !text->empty() && (*text)[0] == value;
}

std::string describe_mount(const Mount& mount) {
  const std::string target = "'" + mount.target + "'";
  const std::string access = mount.read_only ? " read-only" : "";
  switch (mount.kind) {
    case MountKind::bind:
      return "cannot bind '" + mount.source + "' at " + target + access;
    case MountKind::overlay:
      return "cannot mount '" + mount.source + "' at " + target +
             (mount.read_only ? access : " copy-on-write");
    case MountKind::device:
      return "cannot bind the device '" + mount.source + "'";
    case MountKind::proc:
      return "cannot mount a /proc of the sandbox's own";
    case MountKind::devpts:
      return "cannot mount a devpts of the sandbox's own";
    case MountKind::mask_file:
    case MountKind::mask_folder:
      return "cannot hide " + target;
    case MountKind::read_only:
      return "cannot make " + target + " read-only";
    default:
      return "cannot make " + target;
  }
}

std::string mount_hint(const Mount& mount, int error) {
  if (error == ESTALE)
    return "'" + mount.source + "' was replaced while sbx was starting: run again";
  if (error == EROFS)
    return "the target does not exist and lies in a folder of the host that sbx does not write to: "
           "create it, or choose another target";
  if (error == ELOOP) return "a part of the path is a symbolic link: write the path it leads to";
  if (error == EOVERFLOW)
    return "the folder holds files of users or groups that the sandbox has no ids for";
  if (mount.kind == MountKind::proc && error == EPERM)
    return std::string(
               "the host's own /proc is partly hidden, so the kernel refuses a fresh one; ") +
           kContainerCure;
  if (mount.kind == MountKind::overlay &&
      (error == EINVAL || error == ENODEV || error == EOPNOTSUPP))
    return "this file system or kernel can't be a layer of overlayfs without root: --workspace "
           "DIR:read-write works on it";
  return "";
}

Error explain_exec(const plan::Plan& plan, int error) {
  Error result{.errno_value = error};
  result.message = "cannot run '" + plan.executable + "'";
  if (error == ENOENT) {
    result.kind = ErrorKind::not_found;
    result.code = "command-not-found";
    result.hint =
        "it, or the loader it names, is not inside the sandbox: grant it with --read PATH";
    return result;
  }
  result.kind = ErrorKind::not_executable;
  result.code = "command-not-executable";
  if (error == E2BIG)
    result.hint = "arguments and environment together are larger than the kernel takes";
  if (error == ENOEXEC)
    result.hint =
        "it is neither a program for this machine nor a script with a #! line: name its "
        "interpreter with --lang";
  return result;
}

}  // namespace

Error explain_failure(const plan::Plan& plan, const child::Progress& progress) {
  if (progress.stage == Stage::exec) return explain_exec(plan, progress.error);
  Error error{.kind = ErrorKind::setup,
              .code = "setup-" + std::string(stage_name(progress.stage)),
              .errno_value = progress.error};
  error.message = "set-up stage '" + std::string(stage_name(progress.stage)) + "' failed";
  switch (progress.stage) {
    case Stage::make_entry:
    case Stage::bind:
    case Stage::bind_attributes:
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
      }
      break;
    case Stage::limits:
      if (progress.index < plan.process_limits.size())
        error.origin = plan.process_limits[progress.index].origin;
      break;
    case Stage::seccomp:
      if (progress.error == EBUSY) error.code = kListenerBusy;
      break;
    case Stage::pivot:
      if (progress.error == EINVAL)
        error.hint =
            "the caller's root is not a mount of its own (a chroot or an initramfs): run sbx "
            "outside of it";
      break;
    case Stage::private_mounts:
      if (progress.error == EPERM || progress.error == EACCES)
        error.hint =
            "the kernel gives user namespaces here but no rights in them (AppArmor's restriction): "
            "install the AppArmor profile, or sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0";
      break;
    default:
      break;
  }
  return error;
}

Error explain_clone_failure(int errno_value) {
  Error error{.kind = ErrorKind::host,
              .code = "no-user-namespace",
              .message = "this machine refuses to make user namespaces",
              .errno_value = errno_value};
  if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
    error.hint = "sysctl kernel.unprivileged_userns_clone=1";
  else if (setting_is("/proc/sys/user/max_user_namespaces", '0'))
    error.hint = "sysctl user.max_user_namespaces=15000";
  else if (setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
    error.hint =
        "install sbx's AppArmor profile, or sysctl kernel.apparmor_restrict_unprivileged_userns=0";
  else if (errno_value == EPERM)
    error.hint = std::string("a container's system-call filter or a chroot is in the way; ") +
                 kContainerCure;
  else if (errno_value == ENOSPC || errno_value == EUSERS)
    error.hint =
        "too many namespaces are in use, or they are nested too deep: see the limits in "
        "/proc/sys/user";
  return error;
}

}  // namespace sbx::spawn
