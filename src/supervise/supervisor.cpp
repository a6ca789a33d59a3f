#include "supervise/supervisor.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/control.hpp"
#include "base/event_loop.hpp"
#include "base/resident.hpp"
#include "base/sys.hpp"
#include "supervise/foreground.hpp"
#include "supervise/meters/budget_watch.hpp"
#include "supervise/meters/full_file.hpp"
#include "supervise/notifier.hpp"
#include "supervise/streams/input_relay.hpp"
#include "supervise/streams/output_relay.hpp"
#include "supervise/streams/terminal.hpp"
#include "supervise/verdict.hpp"

namespace sbx::supervise {
namespace {

using control::FromPid1;
using control::FromSupervisor;
using std::chrono::microseconds;
using namespace std::chrono_literals;

constexpr auto kCancelGrace = 2s;
constexpr auto kInitExit = 1s;    ///< PID 1 has reported the main process's end, but doesn't end
constexpr auto kUnkillable = 5s;  ///< a process in uninterruptible sleep survives SIGKILL
/// After the run has ended: for a reader that doesn't read, and for what the program sent.
constexpr auto kLastWords = 1s;
constexpr auto kStopAnswer = 1s;
constexpr auto kFreezeLook = 1ms;
constexpr auto kSettled = 50ms;  ///< a short run skips the cost of giving memory back

UniqueFd duplicate(int fd) {
  return UniqueFd(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

/// Errors: internal "epoll", with EMFILE where the caller's limit of open files is low.
Result<UniqueFd> duplicate_to_watch(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return fail_errno(ErrorKind::internal, "epoll", "cannot copy a descriptor");
  return copy;
}

}  // namespace

class Supervisor::Impl {
 public:
  Impl(EventLoop& loop, const Settings& settings, const Watched& sandbox, Sinks sinks,
       Cancellation cancellation);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Status start() { return watch_everything(); }
  void spend(Budget budget) {
    measured_.by_session = true;
    decide_and_kill(OverBudget{budget});
  }
  void order(FromSupervisor what, int value = 0) { (void)tree_.order(what, value); }
  void cancel(int signal);
  void decide_and_kill(const Verdict& verdict);
  std::vector<Denial> take_denials() { return notifier_.take(); }
  std::vector<LimitMet> take_limits_met(int status);
  [[nodiscard]] std::uint64_t cpu_microseconds() { return budgets_.cpu_microseconds(); }
  void renew_cpu_time() { budgets_.renew_cpu_time(); }
  void tell_limits() const;
  [[nodiscard]] bool over() const {
    return reaped_ && out_.done() && err_.done() && !(may_send_ && settings_.sends());
  }
  Outcome finish();

 private:
  Status watch_everything();
  Status start_streams();
  Status start_input();
  Status watch_callers();
  void start_timers();
  OutputRelay::Options output_options(const char* name, Bytes cap);

  void read_control();
  void control_ended();
  void handle_signals();
  void stop_all();
  void await_freeze(std::uint64_t until);
  void stop_self();
  void continue_all();
  void wall_time_ended();
  void over_output(const std::string& stream);

  bool decide(Verdict verdict);
  void kill();
  void pid1_ended();
  void reaped(const control::Used& used);
  void note_resident(long largest_kib);
  void note_left_running(const control::Report& report);
  void give_up_streams();
  void note_unread_terminal();
  void leave_loop();
  [[nodiscard]] bool met_file_size(const Verdict& verdict);
  Outcome outcome();
  [[nodiscard]] std::optional<std::uint64_t> memory_peak() const;
  [[nodiscard]] Usage usage() const;

  EventLoop& loop_;
  const Settings& settings_;
  const Watched& sandbox_;
  Tree& tree_;
  Sinks sinks_;
  const Cancellation cancellation_;
  const std::uint64_t started_;

  OutputRelay out_;
  OutputRelay err_;
  std::optional<InputRelay> in_;
  std::optional<RawTerminal> terminal_;
  Notifier notifier_;
  BudgetWatch budgets_;

  std::optional<Verdict> decided_;  ///< by sbx, recorded before it kills
  Measured measured_;
  FullFiles full_files_before_ = settings_.full_files_before;  ///< they count no more
  std::optional<int> main_status_;
  bool killed_ = false;
  long pid1_peak_kib_ = 0;           ///< 0: not reported
  std::uint64_t resident_peak_ = 0;  ///< bytes, of one process; 0: not above PID 1's
  LeftRunning left_running_;
  bool reaped_ = false;
  bool may_send_ = false;  ///< the program has ended by itself: what it sent is passed on
  bool has_left_ = false;
  bool stopping_ = false;
  std::uint64_t ended_ = 0;
  std::vector<std::string> notes_;
  std::vector<UniqueFd> readers_;  ///< of cancellation_.readers, those that are there
};

Supervisor::Impl::Impl(EventLoop& loop, const Settings& settings, const Watched& sandbox,
                       Sinks sinks, Cancellation cancellation)
    : loop_(loop),
      settings_(settings),
      sandbox_(sandbox),
      tree_(sandbox.tree),
      sinks_(std::move(sinks)),
      cancellation_(std::move(cancellation)),
      started_(sys::now_microseconds()),
      out_(loop_,
           settings.interactive ? duplicate(sandbox.terminal) : std::move(sinks_.streams.out),
           sinks_.out, output_options("stdout", settings.stdout_cap)),
      err_(loop_, std::move(sinks_.streams.err), sinks_.err,
           output_options("stderr", settings.stderr_cap)),
      notifier_(loop_, sandbox.listener,
                {.explain = settings.explain,
                 .notes = settings.notes,
                 .kill = settings.kill_on_denied
                             ? [this](const std::string& what) { decide_and_kill(Denied{what}); }
                             : std::function<void(const std::string&)>(),
                 .events = sinks_.events}),
      budgets_(loop_, settings,
               {.tree = sandbox.tree,
                .scratch = sandbox.scratch,
                .growth = sandbox.growth,
                .entries = sandbox.entries,
                .sockets = sandbox.sockets},
               {.ended = [this] { return decided_ || main_status_ || reaped_; },
                .spent = [this](Budget budget) { decide_and_kill(OverBudget{budget}); }}) {}

/// `captured`: the cap of what is kept for the record.
OutputRelay::Options Supervisor::Impl::output_options(const char* name, Bytes captured) {
  OutputRelay::Options options{.name = name,
                               .cap = settings_.capture ? captured : settings_.passed_cap,
                               .capture = settings_.capture,
                               .on_exceed = settings_.on_exceed};
  if (settings_.interactive) options.escapes = EscapePolicy::interactive;
  if (sinks_.events != nullptr)
    options.cut = [this, stream = options.name, cap = options.cap] {
      sinks_.events->output_cut(stream, cap);
    };
  options.exceeded = [this, stream = std::string(name)] { over_output(stream); };
  return options;
}

Status Supervisor::Impl::watch_everything() {
  // First, because a denied call waits for its answer: nothing else may be waited for before.
  SBX_TRY(notifier_.start());
  if (settings_.attach) SBX_TRY(settings_.attach(loop_));
  SBX_TRY(tree_.watch(loop_, [this] { pid1_ended(); }));
  SBX_TRY(loop_.watch(tree_.handles().control, EPOLLIN, [this](std::uint32_t) { read_control(); }));
  if (const SignalScope* const signals = cancellation_.signals)
    SBX_TRY(loop_.watch(signals->fd(), EPOLLIN, [this](std::uint32_t) { handle_signals(); }));
  SBX_TRY(watch_callers());
  SBX_TRY(start_streams());
  start_timers();
  return budgets_.start();
}

/// Where nobody waits for the answer any more, the run ends as after a hang-up.
Status Supervisor::Impl::watch_callers() {
  // A hang-up is always reported, epoll_ctl(2); edge-triggered, because urgent data is nothing to
  // us.
  constexpr std::uint32_t kHangUp = EPOLLERR | EPOLLHUP;
  for (const int reader : cancellation_.readers) {
    const int own = readers_.emplace_back(SBX_TRY(duplicate_to_watch(reader))).get();
    SBX_TRY(loop_.watch(own, EPOLLPRI | EPOLLET, [this, own](std::uint32_t events) {
      if ((events & kHangUp) == 0) return;
      loop_.forget(own);
      std::erase_if(readers_, [own](const UniqueFd& each) { return each.get() == own; });
      if (readers_.empty()) cancel(SIGHUP);
    }));
  }
  if (cancellation_.cancel >= 0)
    SBX_TRY(loop_.watch(cancellation_.cancel, EPOLLIN, [this](std::uint32_t) {
      loop_.forget(cancellation_.cancel);
      cancel(SIGTERM);
    }));
  if (cancellation_.parent < 0) return {};
  return loop_.watch(cancellation_.parent, EPOLLIN, [this](std::uint32_t) {
    loop_.forget(cancellation_.parent);
    notes_.emplace_back("the process that started sbx has ended (--die-with-parent)");
    cancel(SIGHUP);
  });
}

Status Supervisor::Impl::start_streams() {
  if (settings_.interactive) {
    terminal_.emplace(sinks_.in);
    terminal_->copy_size_to(sandbox_.terminal);
  }
  SBX_TRY(out_.start());
  SBX_TRY(err_.start());
  return start_input();
}

Status Supervisor::Impl::start_input() {
  UniqueFd to = settings_.interactive ? SBX_TRY(duplicate_to_watch(sandbox_.terminal))
                                      : std::move(sinks_.streams.in);
  if (!to.valid()) return {};
  // A descriptor of its own: others in the loop may read the caller's as well.
  UniqueFd& from = sinks_.streams.in_source;
  if (!from.valid() && sinks_.in >= 0) from = SBX_TRY(duplicate_to_watch(sinks_.in));
  InputRelay::Options options{.source = from.get(),
                              .to_terminal = settings_.interactive,
                              .is_sent = settings_.input_is_sent,
                              .gauge = std::move(sinks_.streams.in_gauge)};
  // SIGWINCH of a change before that may wait in the same turn of the loop, behind the input.
  if (terminal_) options.before_typed = [this] { terminal_->copy_size_to(sandbox_.terminal); };
  in_.emplace(loop_, std::move(to), std::move(options));
  return in_->start();
}

void Supervisor::Impl::start_timers() {
  if (settings_.budgets.wall_time.count() > 0)
    loop_.at(
        started_ + static_cast<std::uint64_t>(microseconds(settings_.budgets.wall_time).count()),
        [this] { wall_time_ended(); });
  loop_.after(kSettled, [] {
    release_program_pages();
    ::malloc_trim(0);  // policy and plan are no longer needed
  });
}

void Supervisor::Impl::read_control() {
  control::Report report{};
  for (;;) {
    const ssize_t got = ::recv(tree_.handles().control, &report, sizeof report, MSG_DONTWAIT);
    if (got < 0) return;  // EAGAIN
    if (got == 0) return control_ended();
    if (got != sizeof report) continue;
    if (report.what == FromPid1::call_ended && !reaped_) return reaped(report.used);
    if (report.what == FromPid1::stopped && stopping_) stop_self();
    if (report.what == FromPid1::child_ended) {
      budgets_.note_before_reaping();
      order(FromSupervisor::reap);
    }
    const bool alone = report.what == FromPid1::main_ended_alone;
    if (alone || report.what == FromPid1::left_behind) {
      const int others = alone ? 0 : std::max(report.value, 0);
      budgets_.note_tasks(static_cast<std::uint64_t>(others) + 1);
      pid1_peak_kib_ = report.own_peak;
      note_left_running(report);
    }
    if (!(alone || report.what == FromPid1::main_ended) || main_status_) continue;
    main_status_ = report.value;
    loop_.after(kInitExit, [this] { kill(); });
  }
}

void Supervisor::Impl::control_ended() {
  loop_.forget(tree_.handles().control);
  const auto used = tree_.lost();
  if (used && !reaped_) reaped(*used);
}

void Supervisor::Impl::handle_signals() {
  while (const int signal = cancellation_.signals->next()) {
    switch (signal) {
      case SIGTSTP:
        stop_all();
        break;
      case SIGCONT:
        continue_all();
        break;
      case SIGWINCH:
        if (terminal_) terminal_->copy_size_to(sandbox_.terminal);
        break;
      default:
        cancel(signal);
    }
  }
}

void Supervisor::Impl::cancel(int signal) {
  if (reaped_) return give_up_streams();
  if (!decide(Cancelled{signal})) return kill();
  order(FromSupervisor::signal_main, signal);
  loop_.after(kCancelGrace, [this] { kill(); });
}

void Supervisor::Impl::stop_all() {
  stopping_ = true;
  constexpr auto kLongest = static_cast<std::uint64_t>(microseconds(kStopAnswer).count());
  if (tree_.stop()) return await_freeze(sys::now_microseconds() + kLongest);
  loop_.after(kStopAnswer, [this] { stop_self(); });
}

/// A process in the middle of a system call freezes when that is over.
void Supervisor::Impl::await_freeze(std::uint64_t until) {
  if (!stopping_) return;
  if (tree_.has_stopped() || sys::now_microseconds() >= until) return stop_self();
  loop_.after(kFreezeLook, [this, until] { await_freeze(until); });
}

void Supervisor::Impl::stop_self() {
  if (!stopping_) return;
  stopping_ = false;
  if (terminal_) terminal_->restore();
  if (!tree_.takes_supervisor_along()) return;
  if (cancellation_.signals != nullptr) cancellation_.signals->stop_here();
  continue_all();
}

void Supervisor::Impl::continue_all() {
  stopping_ = false;
  if (terminal_) terminal_->make_raw();
  tree_.wake();
}

void Supervisor::Impl::wall_time_ended() {
  if (!decide(OverBudget{Budget::wall_time})) return;
  if (settings_.budgets.grace.count() == 0) return kill();
  order(FromSupervisor::signal_main, SIGTERM);
  loop_.after(settings_.budgets.grace, [this] { kill(); });
}

void Supervisor::Impl::over_output(const std::string& stream) {
  if (measured_.stream.empty()) measured_.stream = stream;
  decide_and_kill(OverBudget{Budget::output});
}

/// Whether this is what ends the run: the first decision, and the main process had not ended by
/// then.
bool Supervisor::Impl::decide(Verdict verdict) {
  if (decided_ || reaped_) return false;
  read_control();  // an end that was already reported comes first
  if (main_status_) return false;
  // So does a kill for lack of memory.
  decided_ = budgets_.memory_killed() ? Verdict(OverBudget{Budget::memory}) : std::move(verdict);
  measured_.cpu_microseconds = budgets_.cpu_microseconds() - budgets_.cpu_from();
  return true;
}

void Supervisor::Impl::decide_and_kill(const Verdict& verdict) {
  if (decide(verdict)) kill();
}

void Supervisor::Impl::kill() {
  if (killed_ || reaped_) return;
  killed_ = true;
  // Later only PID 1's own times are readable: processes that die with it are not added to them.
  if (decided_) budgets_.note_before_kill();
  tree_.kill();
  loop_.after(kUnkillable, [this] {
    if (reaped_) return;
    notes_.emplace_back("a process of the sandbox can't be killed yet (uninterruptible sleep)");
    reaped_ = true;
    ended_ = sys::now_microseconds();
    budgets_.note_at_end({}, 0);
    give_up_streams();
  });
}

/// Where somebody else collects PID 1, its report follows; or `control` is at its end, if the
/// reporter was killed as well.
void Supervisor::Impl::pid1_ended() {
  const auto used = tree_.reap();
  if (!used) return read_control();
  reaped(*used);
}

void Supervisor::Impl::reaped(const control::Used& used) {
  ended_ = sys::now_microseconds();
  constexpr std::uint64_t kBlock = 512;  // of ru_oublock, on every file system
  budgets_.note_at_end({.user_microseconds = used.user_microseconds,
                        .system_microseconds = used.system_microseconds},
                       used.blocks_written * kBlock);
  reaped_ = true;
  read_control();  // its last message may still be unread
  note_resident(used.largest_kib);
  in_.reset();
  out_.source_is_complete();
  err_.source_is_complete();
  const bool ended_by_us = decided_.has_value() || !main_status_;
  may_send_ = settings_.sends && !ended_by_us;
  loop_.after(kLastWords, [this, ended_by_us] {
    may_send_ = false;
    if (ended_by_us || !out_.blocked()) out_.abandon();
    if (ended_by_us || !err_.blocked()) err_.abandon();
  });
}

/// The largest resident set of any process that was waited for, PID 1 included, whose own is no
/// part of the run. Where PID 1 was killed before it told its own, that is not above ours: it began
/// as a copy of this process.
void Supervisor::Impl::note_resident(long largest_kib) {
  if (pid1_peak_kib_ <= 0) {
    rusage own{};
    (void)::getrusage(RUSAGE_SELF, &own);
    pid1_peak_kib_ = own.ru_maxrss;
  }
  if (largest_kib > pid1_peak_kib_) resident_peak_ = static_cast<std::uint64_t>(largest_kib) * 1024;
}

void Supervisor::Impl::note_left_running(const control::Report& report) {
  const std::string_view comm(report.comm, ::strnlen(report.comm, sizeof report.comm));
  left_running_ = {.count = static_cast<std::uint64_t>(std::max(report.running, 0)),
                   .process = std::string(comm)};
}

/// Nothing where it can't be told from what sbx itself needs: a look after the start may have seen
/// a part only.
std::optional<std::uint64_t> Supervisor::Impl::memory_peak() const {
  const BudgetsSeen& seen = budgets_.seen();
  const TreeCounters* const group = tree_.handles().group;
  const bool is_counted = group != nullptr && group->limits_memory();
  const auto own = static_cast<std::uint64_t>(std::max(pid1_peak_kib_, 0L)) * 1024;
  const std::uint64_t peak = std::max(seen.memory_peak, resident_peak_);
  if (peak == 0 || (!is_counted && resident_peak_ == 0 && peak < own)) return std::nullopt;
  return peak;
}

void Supervisor::Impl::give_up_streams() {
  may_send_ = false;
  out_.abandon();
  err_.abandon();
}

void Supervisor::Impl::note_unread_terminal() {
  if (was_read(sinks_.streams.stdin_witness.get()))
    notes_.emplace_back(
        "stdin is a terminal and was not passed to the command; use -i for an interactive session");
}

Usage Supervisor::Impl::usage() const {
  // Rounded once, so that a budget that was spent is also spent in whole milliseconds.
  const CpuTime used = budgets_.cpu_time();
  const BudgetsSeen& seen = budgets_.seen();
  const std::uint64_t user_ms = used.user_microseconds / 1000;
  Usage usage{.wall_ms = (ended_ - started_) / 1000,
              .user_ms = user_ms,
              .system_ms = used.total() / 1000 - user_ms};
  usage.memory_peak_bytes = memory_peak();
  if (seen.processes_evidence == Evidence::kernel_counter && seen.processes_peak > 0)
    usage.processes_peak = seen.processes_peak;
  usage.written_bytes = seen.disk_peak + seen.written;
  return usage;
}

/// A program that ignores SIGXFSZ, as Python does, is told EFBIG, which leaves no trace but a file
/// that is as large as it may be. Worth a look only when the command failed.
bool Supervisor::Impl::met_file_size(const Verdict& verdict) {
  const std::uint64_t limit = settings_.budgets.file_size.count;
  if (limit == 0 || verdict == Verdict(Exited{0}) || sandbox_.scratch < 0) return false;
  // The plan knows the disk's initial contents, while a supervisor that started late sees later
  // ones. For a copy they are unknown.
  const BudgetsSeen& seen = budgets_.seen();
  const std::uint64_t filled = settings_.disk_begins_with_copy ? seen.disk_peak : seen.disk_filled;
  if (filled / limit <= settings_.full_files_at_start || !full_files_before_.complete) return false;
  const FullFiles before =
      std::exchange(full_files_before_, files_of_size(sandbox_.scratch, limit));
  return std::ranges::any_of(full_files_before_.files, [&](const FullFile& each) {
    return std::ranges::find(before.files, each) == before.files.end();
  });
}

std::vector<LimitMet> Supervisor::Impl::take_limits_met(int status) {
  const Verdict verdict = Exited{status};
  budgets_.note_part();
  Measured measured{.budgets = budgets_.seen()};
  measured.file_size_met = met_file_size(verdict);
  std::vector<LimitMet> met = limits_met(verdict, settings_, measured);
  budgets_.begin_part();
  return met;
}

Outcome Supervisor::Impl::outcome() {
  // The kernel may have killed PID 1 or the main process itself.
  if (!decided_ && budgets_.seen().memory_killed) decided_ = OverBudget{Budget::memory};
  // With polling, an outer limit may have been reached first. Its count includes other processes'
  // kills, so it only decides together with a SIGKILL that sbx didn't send.
  const bool main_was_killed =
      main_status_ && WIFSIGNALED(*main_status_) && WTERMSIG(*main_status_) == SIGKILL;
  if (!decided_ && main_was_killed && budgets_.seen().outer_kill)
    decided_ = OverBudget{Budget::memory};
  if (!decided_ && !main_status_) decided_ = Lost{};
  Outcome outcome;
  const std::uint64_t total = budgets_.cpu_time().total();
  const CpuTime used{.user_microseconds = total - std::min(total, budgets_.cpu_from())};
  outcome.verdict = decided_ ? *decided_ : verdict_of_status(*main_status_, settings_, used);
  measured_.cpu_microseconds = std::max(measured_.cpu_microseconds, used.total());
  measured_.budgets = budgets_.seen();
  measured_.file_size_met = met_file_size(outcome.verdict);
  outcome.detail = detail_of(outcome.verdict, settings_, measured_);
  outcome.out = out_.take();
  outcome.err = err_.take();
  outcome.err.joined = sinks_.streams.joined;
  for (const auto& [relay, name] : {std::pair(&out_, "stdout"), std::pair(&err_, "stderr")})
    if (relay->write_error() != 0 && !outcome.write_error)
      outcome.write_error = WriteError{.stream = name, .errno_value = relay->write_error()};
  outcome.limits_met = limits_met(outcome.verdict, settings_, measured_);
  outcome.denials = notifier_.take();
  if (!decided_) outcome.left_running = left_running_;
  outcome.usage = usage();
  outcome.degraded = budgets_.take_degraded();
  outcome.cpu_time_means = budgets_.cpu_means();
  note_unread_terminal();
  std::ranges::copy(out_.notes(), std::back_inserter(notes_));
  std::ranges::copy(err_.notes(), std::back_inserter(notes_));
  outcome.notes = std::move(notes_);
  return outcome;
}

/// Those that are known to be reached before the end.
void Supervisor::Impl::tell_limits() const {
  if (sinks_.events == nullptr) return;
  const BudgetsSeen& seen = budgets_.seen();
  if (seen.processes_met)
    sinks_.events->limit_met({.limit = "processes", .value = settings_.budgets.processes});
  if (seen.disk_met)
    sinks_.events->limit_met({.limit = "disk", .value = settings_.budgets.disk.count});
  if (seen.disk_files_met)
    sinks_.events->limit_met({.limit = "disk_files", .value = settings_.budgets.disk_files});
}

void Supervisor::Impl::leave_loop() {
  if (has_left_) return;
  has_left_ = true;
  if (settings_.detach) settings_.detach();
  if (terminal_) terminal_->restore();
}

Outcome Supervisor::Impl::finish() {
  leave_loop();
  return outcome();
}

Supervisor::Impl::~Impl() {
  leave_loop();
  kill();
  if (!reaped_) pid1_ended();  // of a call: its holder reaps it
}

Supervisor::Supervisor(EventLoop& loop, const Settings& settings, const Watched& sandbox,
                       Sinks sinks, Cancellation cancellation)
    : impl_(std::make_unique<Impl>(loop, settings, sandbox, std::move(sinks),
                                   std::move(cancellation))) {}
Supervisor::~Supervisor() = default;

Status Supervisor::start() {
  return impl_->start();
}

void Supervisor::spend(Budget budget) {
  impl_->spend(budget);
}

void Supervisor::end(const Verdict& reason) {
  impl_->decide_and_kill(reason);
}

void Supervisor::signal_main(int signal) {
  impl_->order(FromSupervisor::signal_main, signal);
}

void Supervisor::signal_group(int signal) {
  impl_->order(FromSupervisor::signal_group, signal);
}

void Supervisor::kill_foreground(pid_t init, std::uint64_t since_microseconds) {
  supervise::kill_foreground(init, since_microseconds);
}

std::vector<Denial> Supervisor::take_denials() {
  return impl_->take_denials();
}

std::vector<LimitMet> Supervisor::take_limits_met(int status) {
  return impl_->take_limits_met(status);
}

void Supervisor::renew_cpu_time() {
  impl_->renew_cpu_time();
}

std::uint64_t Supervisor::cpu_microseconds() {
  return impl_->cpu_microseconds();
}

void Supervisor::cancel(int signal) {
  impl_->cancel(signal);
}

void Supervisor::after_turn() {
  impl_->tell_limits();
}

bool Supervisor::over() const {
  return impl_->over();
}

Outcome Supervisor::finish() {
  return impl_->finish();
}

Result<Outcome> supervise(const Settings& settings, const Watched& sandbox, Sinks sinks,
                          Cancellation cancellation) {
  EventLoop loop = SBX_TRY(EventLoop::make());
  Supervisor supervisor(loop, settings, sandbox, std::move(sinks), std::move(cancellation));
  SBX_TRY(supervisor.start());
  while (!supervisor.over()) {
    SBX_TRY(loop.run_once());
    supervisor.after_turn();
  }
  return supervisor.finish();
}

}  // namespace sbx::supervise
