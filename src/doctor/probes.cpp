#include "doctor/probes.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/veth.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "base/held.hpp"
#include "base/process.hpp"
#include "base/sys.hpp"
#include "doctor/child.hpp"

namespace sbx::doctor {
namespace {

// The same numbers on every architecture; some headers of Debian 12 lack them.
constexpr long kOpenTree = 428;
constexpr long kMountSetattr = 442;
constexpr long kLandlockCreateRuleset = 444;
constexpr long kLandlockRestrictSelf = 446;

Answer passed() {
  return {};
}

Asked ask(Answer (*probe)()) {
  const Texts texts = ask_child([probe]() -> Texts {
    const Answer answer = probe();
    return {std::to_string(answer.step), std::to_string(answer.error)};
  });
  if (texts.size() != 2) return std::nullopt;
  return Answer{std::stoi(texts[0]), std::stoi(texts[1])};
}

/// Maps one id, as an ordinary user may, user_namespaces(7).
bool map_ids(uid_t uid, gid_t gid) {
  const auto line = [](unsigned id) { return "1000 " + std::to_string(id) + " 1"; };
  return sys::write_file("/proc/self/setgroups", "deny") &&
         sys::write_file("/proc/self/uid_map", line(uid)) &&
         sys::write_file("/proc/self/gid_map", line(gid));
}

/// Runs `probe` in the new namespaces. A pipe carries the answer, because an exit status can't hold
/// step times 256.
Answer inside(Answer (*probe)()) {
  auto pipe = sys::make_pipe();
  if (!pipe) return {kClone, errno};
  clone_args arguments{};
  arguments.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                    CLONE_NEWCGROUP | CLONE_NEWNET;
  arguments.exit_signal = SIGCHLD;
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0) return {kClone, errno};
  if (pid == 0) {
    Answer answer{};
    if (!map_ids(uid, gid))
      answer = {kIdMaps, errno};
    else if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      answer = {kRights, errno};
    else
      answer = probe();
    (void)!::write(pipe->write.get(), &answer, sizeof answer);  // no answer counts as an answer
    ::_exit(0);
  }
  pipe->write = UniqueFd();
  Answer answer{};
  const bool answered = ::read(pipe->read.get(), &answer, sizeof answer) == sizeof answer;
  process::wait_for(static_cast<pid_t>(pid));
  return answered ? answer : Answer{kInside, EIO};
}

Answer mount_proc() {
  return ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0
             ? passed()
             : Answer{kInside, errno};
}

/// Mounts a tmpfs over a directory that every system has; only in this mount namespace.
bool mount_tmpfs() {
  return ::mount("sbx", "/usr", "tmpfs", MS_NOSUID | MS_NODEV, "mode=700") == 0;
}

/// As the child does, on top of the old root.
Answer change_root() {
  if (!mount_tmpfs()) return {kInside, errno};
  return ::syscall(SYS_pivot_root, "/usr", "/usr") == 0 ? passed() : Answer{kRoot, errno};
}

Answer mount_overlay() {
  if (!mount_tmpfs()) return {kInside, errno};
  const UniqueFd usr(::open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const char* name : {"l", "u", "w", "m"})
    if (!held::make_directory(usr.get(), name, 0700)) return {kInside, errno};
  constexpr const char* kLayers = "lowerdir=/usr/l,upperdir=/usr/u,workdir=/usr/w,userxattr";
  return ::mount("overlay", "/usr/m", "overlay", 0, kLayers) == 0 ? passed()
                                                                  : Answer{kInside, errno};
}

Answer set_attribute() {
  if (!mount_tmpfs()) return {kInside, errno};
  return ::setxattr("/usr", "user.sbx", "1", 1, 0) == 0 ? passed() : Answer{kInside, errno};
}

/// RTM_NEWLINK for a pair with kernel-chosen names, rtnetlink(7).
struct VethRequest {
  nlmsghdr head{};
  ifinfomsg link{};
  rtattr info{};
  rtattr kind{};
  std::array<char, 8> name{};
};

Answer make_veth() {
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return {kInside, errno};
  VethRequest request;
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_NEWLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
  request.link.ifi_family = AF_UNSPEC;
  request.info.rta_type = IFLA_LINKINFO;
  request.info.rta_len = sizeof request.info + sizeof request.kind + sizeof request.name;
  request.kind.rta_type = IFLA_INFO_KIND;
  request.kind.rta_len = sizeof request.kind + 5;
  std::memcpy(request.name.data(), "veth", 5);
  if (::send(socket.get(), &request, sizeof request, 0) < 0) return {kInside, errno};
  struct {
    nlmsghdr head;
    nlmsgerr error;
    std::array<char, 512> rest;
  } reply{};
  const ssize_t got = ::recv(socket.get(), &reply, sizeof reply, 0);
  if (got < static_cast<ssize_t>(sizeof reply.head + sizeof reply.error)) return {kInside, EIO};
  return reply.error.error == 0 ? passed() : Answer{kInside, -reply.error.error};
}

Answer install_filter(unsigned flags) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {1, errno};
  sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog program{.len = 1, .filter = &allow};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) >= 0 ? passed()
                                                                               : Answer{2, errno};
}

Answer restrict_with_landlock() {
  constexpr std::uint64_t kExecute = 1;
  const UniqueFd ruleset(
      static_cast<int>(::syscall(kLandlockCreateRuleset, &kExecute, sizeof kExecute, 0)));
  if (!ruleset.valid()) return {1, errno};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {1, errno};
  return ::syscall(kLandlockRestrictSelf, ruleset.get(), 0) == 0 ? passed() : Answer{2, errno};
}

/// A process that only holds a user namespace; the caller writes its maps.
pid_t hold_user_namespace() {
  clone_args arguments{};
  arguments.flags = CLONE_NEWUSER;
  arguments.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid != 0) return static_cast<pid_t>(pid);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) ::pause();
}

Answer map_directory(const std::string& holder) {
  for (const char* map : {"/uid_map", "/gid_map"})
    if (!sys::write_file(holder + map, "0 100000 65536")) return {kIdMaps, errno};
  const UniqueFd space(::open((holder + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd tree(
      static_cast<int>(::syscall(kOpenTree, AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!space.valid() || !tree.valid()) return {kInside, errno};
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<std::uint64_t>(space.get());
  return ::syscall(kMountSetattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) ==
                 0
             ? passed()
             : Answer{kInside, errno};
}

}  // namespace

Asked ask_namespaces() {
  return ask([] { return inside(change_root); });
}
Asked ask_procfs() {
  return ask([] { return inside(mount_proc); });
}
Asked ask_overlay() {
  return ask([] { return inside(mount_overlay); });
}
Asked ask_tmpfs_attributes() {
  return ask([] { return inside(set_attribute); });
}
Asked ask_veth() {
  return ask([] { return inside(make_veth); });
}
Asked ask_filter() {
  return ask([] { return install_filter(0); });
}
Asked ask_listener() {
  return ask([] { return install_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER); });
}
Asked ask_landlock() {
  return ask(restrict_with_landlock);
}
Asked ask_idmapped_mount() {
  return ask([] {
    const pid_t holder = hold_user_namespace();
    if (holder < 0) return Answer{kClone, errno};
    const Answer answer = map_directory("/proc/" + std::to_string(holder));
    ::kill(holder, SIGKILL);
    return answer;
  });
}

}  // namespace sbx::doctor
