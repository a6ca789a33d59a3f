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

#include <algorithm>
#include <span>

#include "base/control.hpp"
#include "base/message.hpp"
#include "base/process.hpp"
#include "base/sys.hpp"
#include "host/process_view.hpp"
#include "spawn/failure.hpp"
#include "spawn/faults.hpp"
#include "spawn/links.hpp"
#include "spawn/pack.hpp"
#include "spawn/reports.hpp"
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
  UniqueFd self = process::open_self();
  if (!self.valid()) return fail_errno(ErrorKind::setup, "no-pidfd", "cannot open a pidfd");
  return Channels{std::move(control), std::move(child_control), std::move(errors),
                  std::move(child_errors), std::move(self)};
}

std::uint64_t flag_of(plan::Namespace space) {
  switch (space) {
    case plan::Namespace::user:
      return CLONE_NEWUSER;
    case plan::Namespace::mount:
      return CLONE_NEWNS;
    case plan::Namespace::pid:
      return CLONE_NEWPID;
    case plan::Namespace::net:
      return CLONE_NEWNET;
    case plan::Namespace::ipc:
      return CLONE_NEWIPC;
    case plan::Namespace::uts:
      return CLONE_NEWUTS;
    case plan::Namespace::cgroup:
      return CLONE_NEWCGROUP;
  }
  return 0;
}

std::uint64_t namespace_flags(const plan::Plan& plan) {
  std::uint64_t flags = 0;
  for (const plan::Namespace space : plan.namespaces) flags |= flag_of(space);
  return flags;
}

struct Clone {
  pid_t pid;
  UniqueFd pidfd;
};

/// The process does nothing before it is sent off.
bool enter_group(int group, pid_t pid) {
  const UniqueFd processes(::openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(pid);
  return processes.valid() &&
         ::write(processes.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Meeting point 1. CLEAR_SIGHAND: the child has no handlers and ignores nothing that the caller
/// ignored.
Result<Clone> clone_child(const plan::Plan& plan, const child::Start& start, int group) {
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = namespace_flags(plan) | CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  if (group >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(group);
  }
  long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  // Docker's filter refuses clone3, whose flags it can't see. The older call can't reset handlers,
  // of which sbx has none.
  const bool is_older = pid < 0 && errno == ENOSYS && plan.namespaces.empty();
  if (is_older)
    pid = ::syscall(SYS_clone, static_cast<unsigned long>(CLONE_PIDFD | SIGCHLD), nullptr, &pidfd,
                    nullptr, nullptr);
  if (pid == 0) child::run_init(start);
  if (pid > 0 && is_older && group >= 0 && !enter_group(group, static_cast<pid_t>(pid))) {
    const int error = errno;
    process::kill(pidfd);
    process::reap(pidfd);
    ::close(pidfd);
    return fail_errno(ErrorKind::setup, "setup-group", "cannot start in the sandbox's cgroup",
                      error);
  }
  if (pid < 0 && group >= 0 &&
      (errno == EACCES || errno == ENODEV || errno == EOPNOTSUPP || errno == EBUSY ||
       errno == EAGAIN))
    return fail_errno(ErrorKind::setup, "setup-group", "cannot start in the sandbox's cgroup");
  if (pid < 0) return fail(explain_clone_failure(errno));
  return Clone{static_cast<pid_t>(pid), UniqueFd(pidfd)};
}

void take_descriptors(Sandbox& sandbox, ReceivedReport received) {
  UniqueFd* const places[] = {&sandbox.scratch, &sandbox.processes, &sandbox.terminal,
                              &sandbox.mount_space};
  auto next = received.fds.begin();
  for (int i = 0; i < 4; ++i)
    if ((received.report.value & (1 << i)) != 0 && next != received.fds.end())
      *places[i] = std::move(*next++);
  sandbox.disk_used = received.report.disk_used;
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

Status map_ids(pid_t pid, const MappedIdentity& identity, const host::Host& host) {
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
  auto received = receive_report(control);
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
  const auto in_gateway = std::ranges::count_if(request.sockets, &SocketRequest::in_gateway);
  for (auto i = in_gateway; i > 0; --i) network.ends.sockets.push_back(std::move(*next++));
  if (request.space) network.ends.space = std::move(*next++);
  while (next != received->fds.end()) network.ends.sockets.push_back(std::move(*next++));
  return network;
}

/// What PID 1 sends; `call` comes from the holder.
enum class Expected : std::uint8_t { call, network, copies, progress, descriptors, listener };

struct Awaited {
  Expected what;
  bool (*comes)(const SpawnRequest&);
};

bool always(const SpawnRequest&) {
  return true;
}
bool has_gateway(const SpawnRequest& request) {
  return request.network.gateway;
}
bool hands_sockets(const SpawnRequest& request) {
  return !request.network.gateway && (request.network.space || !request.network.sockets.empty());
}
bool is_filled(const SpawnRequest& request) {
  return request.disk.fill || request.disk.make;
}
bool notifies(const SpawnRequest& request) {
  return request.plan.filter.notifies;
}

/// In the order in which they are read. Who fills copies takes the descriptors with them.
constexpr Awaited kOfRun[] = {
    {Expected::network, has_gateway},
    {Expected::network, [](const auto& of) { return hands_sockets(of) && is_filled(of); }},
    {Expected::copies, is_filled},
    {Expected::progress, always},
    {Expected::network, [](const auto& of) { return hands_sockets(of) && !is_filled(of); }},
    {Expected::descriptors, [](const auto& of) { return !is_filled(of); }},
    {Expected::listener, notifies},
};
/// Without a command there is no listener.
constexpr std::span kOfHolder = std::span(kOfRun).first(std::size(kOfRun) - 1);
constexpr Awaited kOfCall[] = {
    {Expected::call, always},
    {Expected::progress, always},
    {Expected::descriptors, always},
    {Expected::listener, notifies},
};

std::span<const Awaited> table_of(child::Role role) {
  switch (role) {
    case child::Role::run:
      return kOfRun;
    case child::Role::holder:
      return kOfHolder;
    case child::Role::call:
      return kOfCall;
  }
  return {};
}

std::vector<Expected> messages_of(const SpawnRequest& request) {
  std::vector<Expected> messages;
  for (const Awaited& each : table_of(request.role))
    if (each.comes(request)) messages.push_back(each.what);
  return messages;
}

/// The private disk in a directory, as the child gets it. Root's directories can't be reached by
/// the sandbox's uid: the child gets the mount itself.
Result<UniqueFd> disk_tree(const Disk& disk, const MappedIdentity& identity) {
  if (disk.directory == nullptr || !identity.changes_ids) return UniqueFd();
  UniqueFd tree(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, disk.directory->path.c_str(),
                                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree.valid())
    return fail_errno(ErrorKind::setup, "no-disk-directory",
                      "cannot use '" + disk.directory->path + "' as the private disk");
  return tree;
}

child::Channels channels_of(const Channels& channels, const ChildStreams& streams,
                            ArgumentArea arguments) {
  return {.control = channels.child_control.get(),
          .errors = channels.child_errors.get(),
          .supervisor_pidfd = channels.self.get(),
          .supervisor_ends = {channels.control.get(), channels.errors.get()},
          .streams = {streams.in.get(), streams.out.get(), streams.err.get()},
          .argument_area = arguments.begin,
          .argument_area_size = arguments.size,
          .group_tasks = nullptr,
          .group_task_count = 0,
          .trees = nullptr,
          .scratch_tree = -1,
          .lock = -1,
          .image = -1,
          .kept = 0};
}

winsize window_of(const plan::Plan& plan) {
  winsize window{};
  if (!plan.interactive || ::ioctl(STDIN_FILENO, TIOCGWINSZ, &window) != 0) return {};
  return window;
}

std::vector<int> trees_of(const std::vector<Source>& sources) {
  std::vector<int> trees;
  for (const Source& source : sources)
    trees.push_back(source.tree.valid() ? source.tree.get() : -1);
  return trees;
}

}  // namespace

class Spawning::Build {
 public:
  Build(SpawnRequest request, const child::Fault& fault)
      : request_(std::move(request)), fault_(fault), messages_(messages_of(request_)) {}
  ~Build() {
    if (clone_.pid <= 0) return;
    // Supervision has not begun, so there is no supervise::Tree yet. Of a call's init the holder
    // collects the end: ECHILD.
    // A keeper must live to end what it has started: it does so at the end of its control socket.
    if (request_.plan.identity.is_outside_namespaces())
      channels_.control.reset();
    else
      process::kill(clone_.pidfd.get());
    process::reap(clone_.pidfd.get());
  }
  Build(const Build&) = delete;
  Build& operator=(const Build&) = delete;

  Status begin();
  [[nodiscard]] int fd() const;
  Result<std::optional<Sandbox>> advance();

 private:
  Status clone();
  Status begin_call();
  Status take_call();
  Status send_off();
  Status meet(Expected message);
  Status join_network();
  Status take_descriptors();
  Status fill_copies();
  Status read_progress();
  Status take_listener();
  [[nodiscard]] Error explain_early_end(Error error);
  [[nodiscard]] Sandbox finished();

  SpawnRequest request_;
  child::Fault fault_;
  std::vector<Expected> messages_;
  std::size_t next_ = 0;  ///< of messages_
  Channels channels_;
  Clone clone_{};
  WaitingInit init_;                        ///< of a call
  Progress progress_{Stage::clone, 0, -1};  ///< the last record; the last of all decides
  Sandbox sandbox_;
};

/// The first half, to the clone.
Status Spawning::Build::clone() {
  std::vector<Source> sources(request_.plan.mounts.size());
  const bool has_root = request_.plan.private_directory.empty();
  if (has_root && SBX_TRY(passes(fault_, Stage::grants)))
    sources = SBX_TRY(open_sources(request_.plan, request_.identity));
  request_.stamp("grants");
  UniqueFd tree;
  if (has_root) tree = SBX_TRY(disk_tree(request_.disk, request_.identity));
  const Block block =
      pack(request_.plan,
           {.role = request_.role,
            .network = request_.network,
            .sources = sources,
            .disk = request_.disk.directory,
            .identity = &request_.identity,
            .waits_for_copies = is_filled(request_),
            .list_processes = !host::lists_processes() && SBX_TRY(passes(fault_, Stage::processes)),
            .window = window_of(request_.plan)});
  const UniqueFd sealed = SBX_TRY(block.seal());
  channels_ = SBX_TRY(make_channels());
  child::Start start{.block = sealed.get(),
                     .size = block.bytes().size(),
                     .channels = channels_of(channels_, request_.streams, request_.arguments),
                     .fault = fault_,
                     .inits = nullptr};
  const std::vector<int> trees = trees_of(sources);
  start.channels.trees = trees.data();
  start.channels.scratch_tree = tree.valid() ? tree.get() : -1;
  start.channels.lock = request_.lock;
  const Placement placement =
      SBX_TRY(passes(fault_, Stage::group)) ? request_.placement : Placement{};
  start.channels.group_tasks = placement.joins.data();
  start.channels.group_task_count = placement.joins.size();
  request_.stamp("pack");
  if (!SBX_TRY(passes(fault_, Stage::clone)))
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "setup-clone",
                      .message = "set-up stage 'clone' was left out"});
  clone_ = SBX_TRY(clone_child(request_.plan, start, placement.directory));
  request_.stamp("clone");
  return {};
}

/// A call instead of the first half: an init in the held sandbox gets the program.
Status Spawning::Build::begin_call() {
  if (!SBX_TRY(passes(fault_, Stage::held)))
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "setup-held",
                      .message = "set-up stage 'held' was left out"});
  init_ = request_.init != nullptr
              ? std::move(*request_.init)
              : SBX_TRY(make_waiting_init(request_.plan, request_.holder, request_.placement));
  channels_.control = std::move(init_.control);
  channels_.errors = std::move(init_.errors);
  const Block block = pack(request_.plan, {.role = child::Role::call,
                                           .network = request_.network,
                                           .sources = {},
                                           .window = window_of(request_.plan)});
  const UniqueFd sealed = SBX_TRY(block.seal());
  const ChildStreams& streams = request_.streams;
  const control::CallProgram order{.what = control::FromSupervisor::begin_call,
                                   .block_size = static_cast<std::uint32_t>(block.bytes().size()),
                                   .streams = !request_.plan.interactive,
                                   .image = request_.image >= 0,
                                   .kept = static_cast<std::uint8_t>(request_.kept.size())};
  std::vector<int> fds{sealed.get()};
  if (order.streams)
    fds.insert(fds.end(), {streams.in.get(), streams.out.get(), streams.err.get()});
  if (order.image) fds.push_back(request_.image);
  fds.insert(fds.end(), request_.kept.begin(), request_.kept.end());
  SBX_ASSERT(fds.size() <= control::kMostCallDescriptors);
  request_.stamp("pack");
  // Where it has failed already, its error pipe says why.
  if (!sys::send_message(channels_.control.get(), std::as_bytes(std::span(&order, 1)), fds)) {
    if (errno == ETOOMANYREFS) return fail(sys::send_failure({}));
    next_ = static_cast<std::size_t>(std::ranges::find(messages_, Expected::progress) -
                                     messages_.begin());
  }
  request_.streams = ChildStreams{};
  return {};
}

Status Spawning::Build::take_call() {
  if (!init_.pidfd.valid()) init_.pidfd = SBX_TRY(take_init(channels_.control.get()));
  request_.stamp("clone");
  clone_.pidfd = std::move(init_.pidfd);
  clone_.pid = process::number(clone_.pidfd.get());
  return {};
}

Status Spawning::Build::begin() {
  if (request_.role == child::Role::call) return begin_call();
  SBX_TRY(clone());
  channels_.child_control.reset();
  channels_.child_errors.reset();
  request_.streams = ChildStreams{};
  return send_off();
}

/// Meeting point 2.
Status Spawning::Build::send_off() {
  if (request_.disk.cloned) request_.disk.cloned(clone_.pid);
  const auto& spaces = request_.plan.namespaces;
  const bool has_maps = std::ranges::find(spaces, plan::Namespace::user) != spaces.end();
  if (has_maps && SBX_TRY(passes(fault_, Stage::id_maps)))
    if (auto mapped = map_ids(clone_.pid, request_.identity, request_.host); !mapped)
      return fail(explain_early_end(std::move(mapped).error()));
  // The host's memory pressure ends the sandbox before anything else. The program can take that
  // back as far as oom_score_adj_min, which is mostly 0: CAP_SYS_RESOURCE is needed to go below
  // that, and only a writer that has it, as root mostly has, moves that up to the 500
  // (__set_oom_adj). Not a session's holder: its calls come before it, run_call().
  if (request_.role != child::Role::holder)
    (void)sys::write_file("/proc/" + std::to_string(clone_.pid) + "/oom_score_adj", "500");
  request_.stamp("id_maps");
  if (auto sent = send_order(channels_.control.get(), control::FromSupervisor::go); !sent)
    return fail(explain_early_end(std::move(sent).error()));
  return request_.disk.make ? request_.disk.make() : Status();
}

int Spawning::Build::fd() const {
  return messages_[next_] == Expected::progress ? channels_.errors.get() : channels_.control.get();
}

Result<std::optional<Sandbox>> Spawning::Build::advance() {
  const std::size_t before = next_;
  SBX_TRY(meet(messages_[before]));
  if (next_ < messages_.size()) return std::nullopt;
  return finished();
}

/// Takes the message and moves `next_` on when there is no more of its kind.
Status Spawning::Build::meet(Expected message) {
  switch (message) {
    case Expected::call:
      ++next_;
      return take_call();
    case Expected::network:
      ++next_;
      return join_network();
    case Expected::copies:
      ++next_;
      return fill_copies();
    case Expected::progress:
      return read_progress();
    case Expected::descriptors:
      ++next_;
      return take_descriptors();
    case Expected::listener:
      ++next_;
      return take_listener();
  }
  return {};
}

/// Meeting point 2a.
Status Spawning::Build::join_network() {
  const NetworkRequest& request = request_.network;
  const auto join_all = [&]() -> Status {
    ReceivedNetwork network = SBX_TRY(receive_network(channels_.control.get(), request));
    request_.stamp("sockets");
    if (request.gateway && SBX_TRY(passes(fault_, Stage::links)))
      network.ends.has_ipv6 = SBX_TRY(join(network.links));
    network.ends.gateway_space = std::move(network.links.gateway_space);
    request_.stamp("links");
    SBX_TRY(request.take(std::move(network.ends)));
    if (request.gateway)
      SBX_TRY(send_order(channels_.control.get(), control::FromSupervisor::network_ready));
    request_.stamp("gateway");
    return {};
  };
  auto joined = join_all();
  if (!joined && request.gateway) return fail(explain_early_end(std::move(joined).error()));
  return joined;
}

Status Spawning::Build::take_descriptors() {
  auto received = receive_report(channels_.control.get());
  if (!received || received->report.what != control::FromPid1::descriptors)
    return fail(Error{.kind = ErrorKind::internal,
                      .code = "no-descriptors",
                      .message = "PID 1 sent no descriptors"});
  spawn::take_descriptors(sandbox_, std::move(*received));
  return {};
}

Status Spawning::Build::fill_copies() {
  // Without descriptors PID 1 has failed, and says why on the error pipe.
  if (!take_descriptors()) return {};
  if (request_.disk.fill) SBX_TRY(request_.disk.fill(sandbox_.scratch.get()));
  sandbox_.disk_used = sys::used_bytes(sandbox_.scratch.get());
  request_.stamp("copies");
  if (auto sent = send_order(channels_.control.get(), control::FromSupervisor::filled); !sent)
    return fail(explain_early_end(std::move(sent).error()));
  return {};
}

/// Meeting point 4: one record of the error pipe; at its end every writer is gone.
Status Spawning::Build::read_progress() {
  Progress record{};
  const ssize_t got = ::read(channels_.errors.get(), &record, sizeof record);
  if (got < 0 && errno == EINTR) return {};
  if (got == sizeof record) {
    progress_ = record;
    return {};
  }
  ++next_;
  request_.stamp("payload");
  if (progress_.error == -1)
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "child-died",
                      .message = "the sandbox died during set-up without a word",
                      .hint = "the kernel may be out of memory: see its log"});
  if (progress_.stage != Stage::ready) return fail(explain_failure(request_.plan, progress_));
  return {};
}

Status Spawning::Build::take_listener() {
  auto listener = receive_report(channels_.control.get());
  // The command runs by now. What has ended PID 1 since, as a kill for want of memory does, is how
  // the run ended, and nothing runs on without a listener: with PID 1 all have ended.
  if (!listener) return {};
  if (listener->report.what != control::FromPid1::listener || listener->fds.empty())
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "no-listener",
                      .message = "the filter's listener did not arrive"});
  sandbox_.listener = std::move(listener->fds.front());
  request_.stamp("listener");
  return {};
}

/// What the child said before it died, if that is why the parent's own step failed; else `error`.
Error Spawning::Build::explain_early_end(Error error) {
  process::kill(clone_.pidfd.get());
  Progress record{};
  ssize_t got = 0;
  do {  // killed, it leaves the pipe to nobody
    got = ::read(channels_.errors.get(), &record, sizeof record);
    if (got == sizeof record) progress_ = record;
  } while (got == sizeof record || (got < 0 && errno == EINTR));
  return progress_.error > 0 ? explain_failure(request_.plan, progress_) : error;
}

Sandbox Spawning::Build::finished() {
  // Only now: the id maps of a non-dumpable process's child belong to root.
  ::prctl(PR_SET_DUMPABLE, 0);
  sandbox_.pid = clone_.pid;
  sandbox_.pid1 = std::move(clone_.pidfd);
  sandbox_.control = std::move(channels_.control);
  clone_.pid = -1;
  return std::move(sandbox_);
}

Spawning::Spawning(std::unique_ptr<Build> build) : build_(std::move(build)) {}
Spawning::Spawning(Spawning&&) noexcept = default;
Spawning::~Spawning() = default;

Result<Spawning> Spawning::start(SpawnRequest request) {
  auto build = std::make_unique<Build>(std::move(request), SBX_TRY(fault_from_environment()));
  SBX_TRY(build->begin());
  return Spawning(std::move(build));
}

int Spawning::fd() const {
  return build_->fd();
}

Result<std::optional<Sandbox>> Spawning::advance() {
  auto sandbox = build_->advance();
  if (!sandbox) build_.reset();
  return sandbox;
}

namespace {

Result<Sandbox> built(SpawnRequest request, const WaitFunction& waits) {
  constexpr int kBetween = 100;  // ms
  const std::function<void()> meanwhile = std::move(request.meanwhile);
  Spawning spawning = SBX_TRY(Spawning::start(std::move(request)));
  if (meanwhile) meanwhile();
  for (;;) {
    pollfd next{.fd = spawning.fd(), .events = POLLIN, .revents = 0};
    while (waits && ::poll(&next, 1, kBetween) == 0) waits(true);
    if (auto sandbox = SBX_TRY(spawning.advance())) return std::move(*sandbox);
  }
}

}  // namespace

Result<Sandbox> spawn(SpawnRequest request) {
  const WaitFunction waits = std::move(request.waits);
  auto sandbox = built(std::move(request), waits);
  if (waits) waits(false);
  return sandbox;
}

}  // namespace sbx::spawn
