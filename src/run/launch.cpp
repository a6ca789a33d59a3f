#include "run/launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cgroup/acquire.hpp"
#include "hints/local_files.hpp"
#include "hints/script.hpp"
#include "host/host.hpp"
#include "host/state.hpp"
#include "plan/make_plan.hpp"
#include "run/advice.hpp"
#include "run/hints.hpp"
#include "run/run.hpp"
#include "run/user_settings.hpp"
#include "run/weaker_plan.hpp"

namespace sbx::run {
namespace {

constexpr int kNotAllApplied = 1;  // as for `sbx changes apply`; the command's own failure wins

/// An empty workspace has no changes to show, apply or keep. A user who typed "empty" gets an
/// error.
void imply_overlay(policy::Policy& policy, const changes::BringOutOptions& request) {
  auto& mode = policy.filesystem.workspace.mode;
  const char* const option = request.apply           ? "--apply"
                             : !request.keep.empty() ? "--keep"
                             : request.diff          ? "--diff"
                                                     : nullptr;
  if (option == nullptr || mode.value != policy::WorkspaceMode::empty ||
      mode.origin.layer == Layer::command_line)
    return;
  mode = {policy::WorkspaceMode::overlay, {.file = option, .layer = Layer::command_line}};
}

/// With the first cause: -q says no other word.
[[nodiscard]] Error not_brought_out(const std::string& first) {
  return {.kind = ErrorKind::host,
          .code = "not-brought-out",
          .message = "not everything could be written: " + first,
          .hint = "the record names each file and the reason: --report FILE"};
}

/// A step that fails stores the reason in the answer; the remaining steps are skipped.
class Launch {
 public:
  Launch(const Request& request, const Sinks& sinks) : request_(request), sinks_(sinks) {}

  Answer plan_only() {
    (void)make_plan();
    stamp("plan");
    return std::move(answer_);
  }

  Answer run() {
    if (!make_plan()) return std::move(answer_);
    run_plan();
    if (!answer_.errors.empty() && is_outdated(answer_.errors.front())) plan_anew();
    if (!answer_.errors.empty() && answer_.errors.front().retry == Retry::without_namespaces)
      go_on_without_namespaces();
    return std::move(answer_);
  }

  std::expected<Prepared, policy::Findings> prepare() {
    if (!make_plan()) return std::unexpected(std::move(answer_.errors));
    return Prepared{.host = std::move(host_),
                    .state_directory = std::move(answer_.state_directory),
                    .policy = std::move(*answer_.policy),
                    .program = std::move(program_),
                    .plan = std::move(*answer_.plan),
                    .group = std::move(acquired_.group)};
  }

 private:
  void stamp(const char* stage) {
    answer_.stamps.push_back({stage, sys::now_microseconds() - request_.started_microseconds});
  }

  bool fails(Error error) {
    answer_.errors.push_back(std::move(error));
    return false;
  }

  bool make_plan() {
    stamp("command line");
    auto acquisition = cgroup::Acquisition::begin();  // runs in parallel with the next steps
    auto host = host::probe();
    if (!host) return fails(std::move(host).error());
    host_ = std::move(*host);
    host_.on_walk = sinks_.walk;
    answer_.state_directory = host::state_directory(host_);
    stamp("host");
    if (!load_policy()) return false;
    stamp("policy");
    auto program = complete_program();
    if (!program) return fails(std::move(program).error());
    program_ = std::move(*program);
    acquired_ = acquisition.finish();
    host_.control_group = acquired_.facts;
    stamp("groups");
    auto plan = plan::make_plan(*answer_.policy, host_, program_);
    if (!plan) return fails(std::move(plan).error());
    answer_.plan = std::move(*plan);
    return true;
  }

  /// Once: the command has not begun. The program's input and variables were read already, and
  /// stay.
  void plan_anew() {
    auto plan = plan::make_plan(*answer_.policy, host_, program_);
    answer_.errors.clear();
    if (!plan) return (void)fails(std::move(plan).error());
    answer_.plan = std::move(*plan);
    run_plan();
  }

  /// This machine refuses namespaces. What a policy asks for is not weakened unasked; what it may
  /// ask for is told where it works.
  void go_on_without_namespaces() {
    policy::Policy& policy = *answer_.policy;
    const bool steps_down =
        policy.isolation.value == policy::Isolation::automatic && !host_.refuses_namespaces;
    if (!steps_down) {
      Error& error = answer_.errors.front();
      if (policy.isolation.value == policy::Isolation::namespaces && works_without(policy))
        error.hint += (error.hint.empty() ? "" : "\n") +
                      std::string(
                          "or with weaker isolation, which works here: --isolation "
                          "landlock (what is lost: sbx-security(7))");
      return;
    }
    host_.refuses_namespaces = true;
    auto plan = plan::make_plan(policy, host_, program_);
    if (!plan) return add_why_not_without(plan.error(), answer_.errors.front());
    answer_.errors.clear();
    answer_.plan = std::move(*plan);
    run_plan();
  }

  /// Found out by trying, with a program that ends at once.
  [[nodiscard]] bool works_without(policy::Policy policy) const {
    policy.isolation.value = policy::Isolation::landlock;
    Request trial{.policy = std::move(policy), .capture = true};
    trial.program.operands = {"/usr/bin/true"};
    trial.program.after_dashes = true;
    trial.program.stdin_mode = plan::StdinMode::null;
    const Answer answer = Launch(trial, {}).run();
    return answer.outcome && sbx::exit_status_of(answer.outcome->verdict) == 0;
  }

  bool load_policy() {
    if (request_.policy) {
      answer_.policy = request_.policy;
      return true;
    }
    auto settings = user_settings(host_);
    if (!settings) return fails(std::move(settings).error());
    answer_.keeps_record = settings->keeps_record;
    auto policy = policy::load(request_.policies, request_.overrides, settings->context);
    if (!policy) {
      answer_.errors = std::move(policy).error();
      return false;
    }
    answer_.policy = std::move(*policy);
    imply_overlay(*answer_.policy, request_.bring_out);
    return true;
  }

  Result<plan::RunRequest> complete_program() {
    plan::RunRequest program = request_.program;
    Variables variables = SBX_TRY(read_variables(request_.variables));
    for (auto& each : variables) program.environment.push_back(std::move(each));
    // As docker does: piped input has an end, which a terminal would not pass on unchanged.
    program.interactive = program.interactive && ::isatty(STDIN_FILENO) == 1;
    return program;
  }

  void run_plan() {
    changes::BringOut bring_out(request_.bring_out, *answer_.policy, *answer_.plan,
                                answer_.state_directory);
    if (const auto prepared = bring_out.prepare(sinks_.person); !prepared)
      return (void)fails(prepared.error());
    auto outcome = run::run(
        *answer_.plan, host_,
        {.capture = request_.capture,
         .arguments = request_.arguments,
         .copy = bring_out.copy(request_.lists_changes || answer_.keeps_record.value_or(false)),
         .state_directory = answer_.state_directory,
         .group = acquired_.group.get(),
         .id = request_.id,
         .policy = answer_.policy->name.value,
         .readers = request_.readers,
         .parent = request_.parent,
         .cancel = request_.cancel,
         .events = request_.events,
         .set_up = sinks_.set_up,
         .copied = sinks_.copied,
         .started_microseconds = request_.started_microseconds,
         .tells_lost_files = !sinks_.silent && !bring_out_is_asked(),
         .trial = request_.trial});
    const bool ends = outcome || (outcome.error().retry != Retry::without_namespaces &&
                                  !is_outdated(outcome.error()));
    if (ends) acquired_.group.reset();
    if (!outcome) return (void)fails(std::move(outcome).error());
    answer_.outcome = std::move(*outcome);
    note_hint();
    tell_the_rest();
    auto& stamps = answer_.outcome->stamps;
    answer_.stamps.insert(answer_.stamps.end(), stamps.begin(), stamps.end());
    if (sinks_.ended) sinks_.ended(answer_);
    stamp("words");
    Status finished = bring_out.finish(*answer_.outcome, request_.id,
                                       {.silent = sinks_.silent,
                                        .paint = sinks_.paint,
                                        .copied = sinks_.copied,
                                        .person = sinks_.person});
    stamp("changes");
    answer_.brought_out = bring_out.take();
    tell_unsaved();
    if (!finished)
      fails(std::move(finished).error());
    else if (answer_.brought_out.has_failures)
      fails(not_brought_out(answer_.brought_out.first_failure));
  }

  /// Reports what is known only after the run.
  void tell_the_rest() const {
    Events* const events = request_.events;
    if (events == nullptr) return;
    for (const Denial& denial : answer_.outcome->denials) events->denied(denial);
    for (const LimitMet& met : answer_.outcome->limits_met) events->limit_met(met);
  }

  [[nodiscard]] bool bring_out_is_asked() const {
    const changes::BringOutOptions& asked = request_.bring_out;
    return asked.apply || asked.diff || !asked.directory.empty() || !asked.keep.empty();
  }

  /// What the person typed tells why --out brought nothing.
  void tell_unsaved() const {
    const auto& collected = answer_.brought_out.collected;
    if (sinks_.silent || !collected || !collected->files.empty() || !collected->left.empty())
      return;
    const plan::RunRequest& program = request_.program;
    std::string text = program.code.value_or("");
    for (std::size_t i = 0; i < std::min<std::size_t>(program.operands.size(), 2); ++i)
      if (text.empty())  // python3 chart.py
        text =
            hints::head_of_script(*answer_.policy, hints::local_view(host_), {program.operands[i]});
    const std::string note = note_of_unsaved(text);
    if (!note.empty()) sinks_.person.tell("sbx: " + printable(note) + "\n");
  }

  void note_hint() {
    add_hints(*answer_.outcome, *answer_.policy, *answer_.plan, host_,
              {.operands = request_.program.operands,
               .reader = request_.for_person ? hints::Reader::person : hints::Reader::unknown});
  }

  const Request& request_;
  const Sinks& sinks_;
  host::Host host_;
  plan::RunRequest program_;
  cgroup::Acquired acquired_;
  Answer answer_;
};

}  // namespace

Answer launch(const Request& request, const Sinks& sinks) {
  return Launch(request, sinks).run();
}

Answer plan_only(const Request& request, const Sinks& sinks) {
  return Launch(request, sinks).plan_only();
}

std::expected<Prepared, policy::Findings> prepare(const Request& request, const Sinks& sinks) {
  return Launch(request, sinks).prepare();
}

bool is_outdated(const Error& error) {
  return error.code == "changed-during-set-up";
}

std::string make_run_id() {
  return "r_" + random_hex();
}

int exit_status_of(const Answer& answer) {
  if (!answer.errors.empty()) return sbx::exit_status_of(answer.errors.front());
  if (!answer.outcome) return 0;  // only planned
  if (answer.outcome->write_error) return exit_status::kCouldNot;
  if (answer.brought_out.signal != 0)
    return sbx::exit_status_of(Cancelled{answer.brought_out.signal});
  const int status = sbx::exit_status_of(answer.outcome->verdict);
  return status == 0 && answer.brought_out.is_incomplete ? kNotAllApplied : status;
}

}  // namespace sbx::run
