#include "cli/run_command.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "base/sys.hpp"
#include "cgroup/acquire.hpp"
#include "cli/bring_out.hpp"
#include "cli/context.hpp"
#include "cli/github.hpp"
#include "cli/hints.hpp"
#include "cli/kept_record.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/variables.hpp"
#include "cli/words.hpp"
#include "host/host.hpp"
#include "host/state.hpp"
#include "plan/make_plan.hpp"
#include "run/run.hpp"

namespace sbx::cli {
namespace {

void write_stderr(const std::string& text) {
  (void)sys::write_all(STDERR_FILENO, text);  // a closed or full stderr can't be told anywhere
}

constexpr int kNotAllApplied = 1;  // as `sbx changes apply` ends; the command's own status wins

/// One `sbx run`, step by step; each step that fails has told people and record why.
class RunCommand {
 public:
  RunCommand(const Invocation& typed, const OwnProcess& process)
      : typed_(typed), process_(process), paint_(paint_for(typed.output.color, STDERR_FILENO)) {
    facts_.typed = &typed_;
  }

  int refuse(const Error& error) {
    if (const auto prepared = prepare_report(); !prepared)
      (void)tell(prepared.error());  // the first error decides
    return could_not(error);
  }

  int run() {
    if (!typed_.output.github) return steps();
    if (typed_.output.json) return refuse(json_with_github());
    auto fence = GithubFence::raise();
    if (!fence) return could_not(fence.error());
    const int status = steps();
    // Everything that names what the program did has been said within the fence.
    fence->lower();
    if (!annotation_.empty()) write_stderr("::error title=sbx::" + github_data(annotation_) + "\n");
    return status;
  }

 private:
  int steps() {
    if (typed_.die_with_parent) parent_ = open_parent();
    // First, so that every later mistake is in the record too.
    if (const auto prepared = prepare_report(); !prepared) return could_not(prepared.error());
    stamp("command line");
    auto acquisition = cgroup::Acquisition::begin();

    auto host = host::probe();
    if (!host) return could_not(host.error());
    host_ = std::move(*host);
    stamp("host");
    if (const auto status = load_policy(); status >= 0) return status;
    stamp("policy");
    auto request = complete_request();
    if (!request) return could_not(request.error());
    acquired_ = acquisition.finish();
    host_.control_group = acquired_.facts;
    stamp("groups");
    auto plan = plan::make_plan(policy_, host_, *request);
    if (!plan) return could_not(plan.error());
    plan_ = std::move(*plan);
    facts_.plan = &plan_;
    return typed_.output.dry_run ? dry_run() : run_plan();
  }

  /// A descriptor and not PR_SET_PDEATHSIG, which follows the parent's thread, prctl(2). A parent that
  /// ended before this is not seen.
  static UniqueFd open_parent() {
    return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0)));
  }

  [[nodiscard]] static Error json_with_github() {
    return {.kind = ErrorKind::usage,
            .code = "usage",
            .message = "--github is for a log that people read, --json for a program",
            .hint = "write the record beside the log: --report FILE"};
  }

  [[nodiscard]] static Error not_brought_out() {
    return {.kind = ErrorKind::host,
            .code = "not-brought-out",
            .message = "not everything could be written",
            .hint = "the record names each file and the reason: --report FILE"};
  }

  /// A place that can't be written does not keep the record from stdout.
  Status prepare_report() {
    auto targets = ReportTargets::prepare(typed_.output);
    targets_ = targets ? std::move(*targets) : ReportTargets::stdout_only(typed_.output);
    facts_.id = run::make_run_id();
    if (!targets) return fail(std::move(targets.error()));
    return {};
  }

  void stamp(const char* stage) {
    if (typed_.output.trace_time)
      stamps_.push_back({stage, sys::now_microseconds() - process_.started});
  }

  int tell(const Error& error) {
    annotation_ = error.text();
    write_stderr(error_text(error, paint_));
    return exit_status_of(error);
  }

  /// Nothing ran: people and record are told, once each.
  int could_not(const Error& error) {
    const int status = tell(error);
    facts_.error = &error;
    return report(status);
  }

  int could_not(const policy::Findings& findings) {
    write_stderr(findings_text(findings, paint_));
    annotation_ = findings.front().text();
    Error first = findings.front();
    if (findings.size() > 1)
      first.message += fmt::format(" (and {} more findings)", findings.size() - 1);
    facts_.error = &first;
    return report(exit_status_of(first));
  }

  /// The record is part of the job: one that can't be delivered is sbx's failure, unless sbx had
  /// failed before.
  int report(int status) {
    if (!targets_.any() && !keeps_record()) return status;
    const std::string record = record_text(facts_);
    keep(record);
    if (!targets_.any()) return status;
    if (targets_.take_at_once(record.size())) hold_signals();
    const Status written = targets_.write(record);
    hold_signals();
    if (written) return status;
    write_stderr(error_text(written.error(), paint_));
    return exit_status::kCouldNot;
  }

  /// A signal that comes when the record has been read: the exit status is the record's all the same.
  /// Before a write that may wait for its reader they are not held, else nothing could end sbx.
  static void hold_signals() {
    sigset_t ending;
    ::sigemptyset(&ending);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) ::sigaddset(&ending, signal);
    ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  }

  /// A run that failed before its settings were read looks at them now.
  bool keeps_record() {
    if (keeps_record_) return *keeps_record_;
    if (host_.files == nullptr)
      if (auto host = host::probe()) host_ = std::move(*host);
    const auto settings = surroundings(host_);
    keeps_record_ = settings && settings->keeps_record;
    return *keeps_record_;
  }

  /// For `sbx why`. A convenience: that it can't be kept is told, and changes nothing.
  void keep(const std::string& record) {
    const std::string folder = keeps_record() ? host::state_folder(host_) : "";
    if (folder.empty()) return;
    if (const Status kept = keep_record(folder, record); !kept)
      write_stderr(note_lines({"the record is not kept: " + kept.error().text()}));
  }

  /// -1 when the policy stands.
  int load_policy() {
    const auto settings = surroundings(host_);
    if (!settings) return could_not(settings.error());
    keeps_record_ = settings->keeps_record;
    const policy::LoadContext* const context = &settings->context;
    std::vector<policy::Override> overrides = typed_.sets;
    overrides.insert(overrides.end(), typed_.named.begin(), typed_.named.end());
    overrides.insert(overrides.end(), typed_.allow_hosts.begin(), typed_.allow_hosts.end());
    auto policy = policy::load(typed_.policies, overrides, *context);
    if (!policy) return could_not(policy.error());
    policy_ = std::move(*policy);
    imply_overlay();
    facts_.policy = &policy_;
    return -1;
  }

  /// An empty workspace has no changes to show, apply or keep. Who typed "empty" gets that as an error.
  void imply_overlay() {
    const BringOutOptions& wish = typed_.bring_out;
    auto& mode = policy_.filesystem.workspace.mode;
    const char* const option = wish.apply           ? "--apply"
                               : !wish.keep.empty() ? "--keep"
                               : wish.diff          ? "--diff"
                                                    : nullptr;
    if (option == nullptr || mode.value != policy::WorkspaceMode::empty ||
        mode.origin.layer == Layer::command_line)
      return;
    mode = {policy::WorkspaceMode::overlay, {.file = option, .layer = Layer::command_line}};
  }

  Result<plan::RunRequest> complete_request() {
    plan::RunRequest request = typed_.request;
    request.environment = SBX_TRY(read_variables(typed_.variables));
    // As docker does: what is piped in has an end, which a terminal would not pass on as it is.
    request.interactive = request.interactive && ::isatty(STDIN_FILENO) == 1;
    return request;
  }

  int dry_run() {
    stamp("plan");
    const std::string text =
        typed_.output.json ? plan_text(policy_, plan_) : plan_words(policy_, plan_);
    if (typed_.output.trace_time) write_stderr(stamp_lines());
    return print_answer(text) ? 0 : exit_status::kCouldNot;
  }

  int run_plan() {
    BringOut bring_out(typed_.bring_out, policy_, plan_, host::state_folder(host_));
    if (const auto prepared = bring_out.prepare(); !prepared) return could_not(prepared.error());
    auto outcome = run::run(plan_, host_,
                            {.capture = typed_.output.json,
                             .arguments = process_.arguments,
                             .copy = bring_out.copy(targets_.any() || keeps_record()),
                             .state_folder = host::state_folder(host_),
                             .group = acquired_.group.get(),
                             .id = facts_.id,
                             .policy = policy_.name.value,
                             .readers = targets_.readers(),
                             .parent = parent_.get(),
                             .started_microseconds = process_.started});
    acquired_.group.reset();
    if (!outcome) return could_not(outcome.error());
    if (std::string hint = hint_after_failure(*outcome, policy_, plan_, host_, typed_); !hint.empty())
      outcome->notes.push_back(std::move(hint));
    facts_.outcome = &*outcome;
    if (exit_status_of(outcome->verdict) != 0)
      annotation_ = outcome->detail.empty() ? "the command failed" : outcome->detail;
    const bool silent = typed_.output.quiet || (typed_.output.json && !typed_.output.verbose);
    if (!silent) write_stderr(outcome_words(plan_, *outcome, typed_.output.verbose, paint_));
    if (typed_.output.trace_time)
      stamps_.insert(stamps_.end(), outcome->stamps.begin(), outcome->stamps.end());
    stamp("words");
    const Status finished = bring_out.finish(*outcome, facts_.id, silent, paint_);
    stamp("changes");
    if (typed_.output.trace_time) write_stderr(stamp_lines());
    if (bring_out.collected()) facts_.collected = &*bring_out.collected();
    if (bring_out.kept()) facts_.kept = &*bring_out.kept();
    if (bring_out.applied()) facts_.applied = &*bring_out.applied();
    if (!finished) return report(tell(finished.error()));
    if (bring_out.has_failures()) return report(tell(not_brought_out()));
    if (outcome->write_error) return report(exit_status::kCouldNot);
    if (bring_out.signal() != 0) return report(exit_status_of(Cancelled{bring_out.signal()}));
    const int status = exit_status_of(outcome->verdict);
    return report(status == 0 && bring_out.is_incomplete() ? kNotAllApplied : status);
  }

  [[nodiscard]] std::string stamp_lines() const {
    std::string text;
    for (const Stamp& each : stamps_)
      text += fmt::format("sbx: {:>8} us  {}\n", each.microseconds, each.stage);
    return text;
  }

  const Invocation& typed_;
  OwnProcess process_;
  Paint paint_;
  RunFacts facts_;
  ReportTargets targets_;
  UniqueFd parent_;  ///< --die-with-parent
  host::Host host_;
  cgroup::Acquired acquired_;
  policy::Policy policy_;
  plan::Plan plan_;
  std::vector<Stamp> stamps_;
  std::string annotation_;            ///< --github: what went wrong
  std::optional<bool> keeps_record_;  ///< nothing: not looked at yet
};

}  // namespace

int run_command(const Invocation& typed, const OwnProcess& process) {
  return RunCommand(typed, process).run();
}

int refuse_run(const Invocation& typed, const Error& error) {
  return RunCommand(typed, {}).refuse(error);
}

}  // namespace sbx::cli
