#include "spawn/spawn.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <span>

#include "base/control.hpp"
#include "base/message.hpp"
#include "base/sys.hpp"
#include "spawn/failure.hpp"
#include "spawn/faults.hpp"
#include "spawn/links.hpp"
#include "spawn/pack.hpp"
#include "spawn/sources.hpp"

namespace sbx::spawn {
namespace {

using child::Progress;
using child::Stage;

/// The channels between parent and child while the sandbox is built.
struct Channels {
  UniqueFd control;  ///< parent's end
  UniqueFd child_control;
  UniqueFd errors;  ///< parent's end: read
  UniqueFd child_errors;
  UniqueFd self;  ///< a pidfd of this process, watched by the child
};

Result<Channels> make_channels() {
  auto [control, child_control] = SBX_TRY(sys::make_packet_pair());
  auto [errors, child_errors] = SBX_TRY(sys::make_pipe());
  const long self = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (self < 0) return fail_errno(ErrorKind::setup, "no-pidfd", "cannot open a pidfd");
  return Channels{std::move(control), std::move(child_control), std::move(errors),
                  std::move(child_errors), UniqueFd(static_cast<int>(self))};
}

std::uint64_t namespace_flags(const plan::Plan& plan) {
  std::uint64_t flags =
      CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  if (plan.network.own_namespace) flags |= CLONE_NEWNET;
  return flags;
}

struct Clone {
  pid_t pid;
  UniqueFd pidfd;
};

/// Meeting point 1. CLEAR_SIGHAND: the child has no handlers, and doesn't inherit the caller's ignored signals.
Result<Clone> clone_child(const plan::Plan& plan, child::Program& program, int group) {
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = namespace_flags(plan) | CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  if (group >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(group);
  }
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) child::run_init(program);
  if (pid < 0 && group >= 0 &&
      (errno == EACCES || errno == ENODEV || errno == EOPNOTSUPP || errno == EBUSY ||
       errno == EAGAIN))
    return fail_errno(ErrorKind::setup, "setup-group", "cannot start in the sandbox's cgroup");
  if (pid < 0) return fail(explain_clone_failure(errno));
  return Clone{static_cast<pid_t>(pid), UniqueFd(pidfd)};
}

/// If the kernel lists children (CONFIG_PROC_CHILDREN), the supervisor finds the tree in the host's /proc. Otherwise
/// PID 1 hands over a procfs of its own, which costs each start 40 to 100 us.
bool lists_children() {
  return ::access("/proc/thread-self/children", R_OK) == 0;
}

Status send_order(int control, control::FromSupervisor what) {
  const control::Order order{what, 0};
  if (::send(control, &order, sizeof order, MSG_NOSIGNAL) != sizeof order)
    return fail_errno(ErrorKind::setup, "child-died", "the sandbox died before it was set up");
  return {};
}

struct Received {
  control::Report report{};
  std::vector<UniqueFd> fds;
};

/// Receives one report with its descriptors; empty at end of file.
std::optional<Received> receive(int control) {
  Received received;
  sys::Message message =
      sys::receive_message(control, std::as_writable_bytes(std::span(&received.report, 1)));
  if (message.length != sizeof received.report) return std::nullopt;
  received.fds = std::move(message.fds);
  return received;
}

void take_descriptors(Sandbox& sandbox, Received received) {
  UniqueFd* const places[] = {&sandbox.scratch, &sandbox.processes, &sandbox.terminal};
  auto next = received.fds.begin();
  for (int i = 0; i < 3; ++i)
    if ((received.report.value & (1 << i)) != 0 && next != received.fds.end())
      *places[i] = std::move(*next++);
}

/// Meeting point 4: reads the error pipe until every writer has closed it. The last record decides.
Progress read_progress(int errors) {
  Progress last{Stage::clone, 0, -1};
  Progress record{};
  for (;;) {
    const ssize_t got = ::read(errors, &record, sizeof record);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof record) return last;
    last = record;
  }
}

void kill_and_reap(const Clone& clone) {
  (void)::syscall(SYS_pidfd_send_signal, clone.pidfd.get(), SIGKILL, nullptr,
                  0);  // it may already be dead
  siginfo_t ignored{};
  while (::waitid(P_PIDFD, static_cast<id_t>(clone.pidfd.get()), &ignored, WEXITED) < 0 &&
         errno == EINTR) {
  }
}

/// Enters a stage of the parent: false if a test skips it, an error if a test makes it fail.
Result<bool> passes(const child::Fault& fault, Stage stage) {
  if (!fault.set || fault.stage != stage) return true;
  if (fault.leave_out) return false;
  return fail(Error{.kind = ErrorKind::setup,
                    .code = "setup-" + std::string(stage_name(stage)),
                    .message = "set-up stage '" + std::string(stage_name(stage)) + "' failed",
                    .errno_value = fault.error});
}

/// The child's own error, if its early death explains why the parent's step failed; otherwise `error`.
Error explain_early_end(const plan::Plan& plan, const Clone& clone, const Channels& channels,
                        Error error) {
  (void)::syscall(SYS_pidfd_send_signal, clone.pidfd.get(), SIGKILL, nullptr, 0);
  const Progress progress = read_progress(channels.errors.get());
  return progress.error > 0 ? explain_failure(plan, progress) : error;
}

Status map_ids(pid_t pid, const Identity& identity, const host::Host& host) {
  auto mapped = write_id_maps(pid, identity, host);
  if (mapped) return {};
  Error error = std::move(mapped).error();
  error.kind = ErrorKind::setup;
  error.code = "setup-id_maps";
  if (error.errno_value == EPERM)
    error.hint =
        "uid 0 without CAP_SETFCAP can't map itself since Linux 5.12: keep that capability, or run "
        "sbx as an ordinary user";
  return fail(std::move(error));
}

std::unexpected<Error> no_network_sockets() {
  return fail(Error{.kind = ErrorKind::setup,
                    .code = "setup-sockets",
                    .message = "the sockets of the sandbox's network did not arrive",
                    .hint = "see the limit of open files: ulimit -n"});
}

/// What PID 1 created for the request, in the order that control::FromPid1::network specifies.
struct ReceivedNetwork {
  LinkEnds links;
  NetworkEnds ends;
};

Result<ReceivedNetwork> receive_network(int control, const NetworkRequest& request) {
  auto received = receive(control);
  const std::size_t expected =
      (request.gateway ? 3U : 0U) + (request.space ? 1U : 0U) + request.sockets.size();
  if (!received || received->report.what != control::FromPid1::network ||
      received->fds.size() != expected)
    return no_network_sockets();
  auto next = received->fds.begin();
  ReceivedNetwork network;
  if (request.gateway) {
    network.links.gateway_netlink = std::move(*next++);
    network.links.gateway_space = std::move(*next++);
    network.links.sandbox_netlink = std::move(*next++);
  }
  const auto in_gateway = std::ranges::count_if(request.sockets, &SocketWish::in_gateway);
  for (auto i = in_gateway; i > 0; --i) network.ends.sockets.push_back(std::move(*next++));
  if (request.space) network.ends.space = std::move(*next++);
  while (next != received->fds.end()) network.ends.sockets.push_back(std::move(*next++));
  return network;
}

/// Meeting point 2a.
Status join_network(const NetworkRequest& request, int control, const child::Fault& fault,
                    const StampFunction& stamp) {
  ReceivedNetwork network = SBX_TRY(receive_network(control, request));
  stamp("sockets");
  if (request.gateway && SBX_TRY(passes(fault, Stage::links)))
    network.ends.has_ipv6 = SBX_TRY(join(network.links));
  network.ends.gateway_space = std::move(network.links.gateway_space);
  stamp("links");
  SBX_TRY(request.take(std::move(network.ends)));
  if (request.gateway) SBX_TRY(send_order(control, control::FromSupervisor::network_ready));
  stamp("gateway");
  return {};
}

Status take(Sandbox& sandbox, const Channels& channels) {
  auto descriptors = receive(channels.control.get());
  if (!descriptors || descriptors->report.what != control::FromPid1::descriptors)
    return fail(Error{.kind = ErrorKind::internal,
                      .code = "no-descriptors",
                      .message = "PID 1 sent no descriptors"});
  take_descriptors(sandbox, std::move(*descriptors));
  return {};
}

Status fill_copies(const FillFunction& fill, Sandbox& sandbox, const Channels& channels) {
  SBX_TRY(take(sandbox, channels));
  SBX_TRY(fill(sandbox.scratch.get()));
  return send_order(channels.control.get(), control::FromSupervisor::filled);
}

Result<Sandbox> meet(const plan::Plan& plan, const host::Host& host, const Identity& identity,
                     const NetworkRequest& network, const Disk& disk, Channels& channels,
                     const child::Fault& fault, const Clone& clone, const StampFunction& stamp) {
  if (SBX_TRY(passes(fault, Stage::id_maps)))
    if (auto mapped = map_ids(clone.pid, identity, host); !mapped)
      return fail(explain_early_end(plan, clone, channels, std::move(mapped).error()));
  // Under memory pressure the host kills the sandbox first. The program can lower the value again to
  // oom_score_adj_min, which is mostly 0: going below needs CAP_SYS_RESOURCE, and only a writer with that capability,
  // as root mostly is, raises the minimum to the 500 (__set_oom_adj).
  (void)sys::write_file("/proc/" + std::to_string(clone.pid) + "/oom_score_adj", "500");
  stamp("id_maps");
  const int control = channels.control.get();
  if (auto sent = send_order(control, control::FromSupervisor::go); !sent)
    return fail(explain_early_end(plan, clone, channels, std::move(sent).error()));
  if (network.gateway)
    if (auto joined = join_network(network, control, fault, stamp); !joined)
      return fail(explain_early_end(plan, clone, channels, std::move(joined).error()));
  const bool wishes = !network.gateway && (network.space || !network.sockets.empty());
  Sandbox sandbox;
  if (disk.fill) {
    if (wishes) SBX_TRY(join_network(network, control, fault, stamp));  // its error goes first
    auto filled = fill_copies(disk.fill, sandbox, channels);
    stamp("copies");
    if (!filled && filled.error().kind != ErrorKind::internal)
      return fail(std::move(filled).error());
  }
  const Progress progress = read_progress(channels.errors.get());
  stamp("payload");
  if (progress.error == -1)
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "child-died",
                      .message = "the sandbox died during set-up without a word",
                      .hint = "the kernel may be out of memory: see its log"});
  if (progress.stage != Stage::ready) return fail(explain_failure(plan, progress));

  if (wishes && !disk.fill) SBX_TRY(join_network(network, control, fault, stamp));
  if (!disk.fill) SBX_TRY(take(sandbox, channels));
  if (plan.filter.notifies) {
    auto listener = receive(control);
    // The command is already running. If PID 1 has died since, for example from the OOM killer, that is how the run
    // ended; nothing runs on without a listener, because all processes died with PID 1.
    if (!listener) return sandbox;
    if (listener->report.what != control::FromPid1::listener || listener->fds.empty())
      return fail(Error{.kind = ErrorKind::setup,
                        .code = "no-listener",
                        .message = "the filter's listener did not arrive"});
    sandbox.listener = std::move(listener->fds.front());
  }
  stamp("listener");
  return sandbox;
}

/// The sandbox's uid can't reach root's directories, so the child gets the mount itself.
Result<UniqueFd> connect_disk(const Disk& disk, const Identity& identity, child::Program& program) {
  program.waits_for_copies = static_cast<bool>(disk.fill);
  if (disk.folder == nullptr) return UniqueFd();
  program.scratch_folder = disk.folder->path.c_str();
  program.scratch_device = disk.folder->device;
  program.scratch_inode = disk.folder->inode;
  if (!identity.changes_ids) return UniqueFd();
  UniqueFd tree(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, disk.folder->path.c_str(),
                                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree.valid())
    return fail_errno(ErrorKind::setup, "no-disk-folder",
                      "cannot use '" + disk.folder->path + "' as the private disk");
  program.scratch_tree = tree.get();
  return tree;
}

void connect(child::Program& program, const Channels& channels, const ChildStreams& streams,
             ArgumentArea arguments) {
  program.control = channels.child_control.get();
  program.errors = channels.child_errors.get();
  program.supervisor_pidfd = channels.self.get();
  program.supervisor_ends[0] = channels.control.get();
  program.supervisor_ends[1] = channels.errors.get();
  program.streams[0] = streams.in.get();
  program.streams[1] = streams.out.get();
  program.streams[2] = streams.err.get();
  program.argument_area = arguments.begin;
  program.argument_area_size = arguments.size;
  if (program.interactive && ::ioctl(STDIN_FILENO, TIOCGWINSZ, &program.window) != 0)
    program.window = {};
}

}  // namespace

Result<Sandbox> spawn(const plan::Plan& plan, const host::Host& host, const Identity& identity,
                      const NetworkRequest& network, const Disk& disk, ChildStreams streams,
                      ArgumentArea arguments, const Placement& group, const StampFunction& stamp) {
  const child::Fault fault = SBX_TRY(fault_from_environment());
  std::vector<Source> sources(plan.mounts.size());
  if (SBX_TRY(passes(fault, Stage::grants))) sources = SBX_TRY(open_sources(plan, identity));
  stamp("grants");
  Packed packed;
  pack(plan, network, sources, packed);
  packed.program.fault = fault;
  const UniqueFd disk_tree = SBX_TRY(connect_disk(disk, identity, packed.program));
  Channels channels = SBX_TRY(make_channels());
  connect(packed.program, channels, streams, arguments);
  packed.program.list_processes = !lists_children();
  const Placement placement = SBX_TRY(passes(fault, Stage::group)) ? group : Placement{};
  packed.program.group_tasks = placement.joins.data();
  packed.program.group_task_count = placement.joins.size();
  packed.program.asks_before_reaping =
      plan.control_group.processes == host::Means::none && plan.budgets.processes > 0;
  stamp("pack");

  if (!SBX_TRY(passes(fault, Stage::clone)))
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "setup-clone",
                      .message = "set-up stage 'clone' was left out"});
  const Clone clone = SBX_TRY(clone_child(plan, packed.program, placement.folder));
  stamp("clone");
  channels.child_control.reset();
  channels.child_errors.reset();
  streams = ChildStreams{};
  auto sandbox = meet(plan, host, identity, network, disk, channels, fault, clone, stamp);
  if (!sandbox) {
    kill_and_reap(clone);
    return sandbox;
  }
  ::prctl(PR_SET_DUMPABLE,
          0);  // not earlier: a non-dumpable process's child has id maps owned by root
  sandbox->pid = clone.pid;
  sandbox->pid1 = UniqueFd(::fcntl(clone.pidfd.get(), F_DUPFD_CLOEXEC, 3));
  sandbox->control = std::move(channels.control);
  return sandbox;
}

}  // namespace sbx::spawn
