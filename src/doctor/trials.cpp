#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "doctor/child.hpp"
#include "doctor/doctor.hpp"
#include "host/cgroup_reasons.hpp"
#include "plan/enforcement.hpp"
#include "plan/make_plan.hpp"
#include "run/launch.hpp"

namespace sbx::doctor {
namespace {

constexpr std::string_view kRootCure = "start sbx as root";

constexpr std::string_view kLegacyCure =
    "start sbx as root, or boot with cgroup v2: systemd.unified_cgroup_hierarchy=1 on the kernel's "
    "command line";

/// What gives sbx a cgroup of its own: what is named is there. systemd's own directory says that it
/// was booted, sd_booted(3); an account without a login, such as nobody, has no manager to ask.
std::string_view group_cure(std::string_view why) {
  const bool is_root = ::geteuid() == 0;
  if (why == host::kLegacyIsRoots) return kLegacyCure;
  const std::string manager = "/run/user/" + std::to_string(::geteuid()) + "/systemd";
  const bool can_ask = ::access(is_root ? "/run/systemd/system" : manager.c_str(), F_OK) == 0;
  if (is_root)
    return can_ask ? "start sbx in a cgroup of its own: systemd-run --scope -p Delegate=yes sbx ..."
                   : "";
  return can_ask ? "start sbx as root, or in a cgroup of its own: systemd-run --user --scope -p "
                   "Delegate=yes sbx ..."
                 : kRootCure;
}

constexpr std::string_view kControllerCure =
    "add cgroup_enable=memory to the kernel's command line (on a Raspberry Pi, to the line of "
    "/boot/firmware/cmdline.txt) and start the machine again";

/// How to have a promise kept in full; empty: not by one command.
std::string_view cure_of(const Degraded& item) {
  if (item.why == plan::kMemoryIsOff) return kControllerCure;
  switch (item.promise) {
    case Promise::memory:
    case Promise::cpus:
    case Promise::cpu_time:
    case Promise::processes:
      return group_cure(item.why);
    case Promise::landlock:
      return "boot with landlock among the names of lsm=";
    case Promise::own_proc:
    case Promise::host_name:
      return "start the container with --security-opt seccomp=unconfined --security-opt "
             "unmask=ALL (podman), or systempaths=unconfined (docker)";
    case Promise::isolation:
      return "start the container with --security-opt seccomp=unconfined --security-opt "
             "systempaths=unconfined (docker), or unmask=ALL (podman)";
    case Promise::named_calls:
      return "run sbx outside of the container manager that listens";
    case Promise::names:
    case Promise::own_tmp:
    case Promise::own_ipc:
    case Promise::own_end:
    case Promise::allowed_calls:
    case Promise::trusted_policy:
    case Promise::network_mode:
    case Promise::named_destinations:
    case Promise::live_grant:
    case Promise::hidden_files:
    case Promise::workspace_mode:
    case Promise::open_files:
    case Promise::file_size:
    case Promise::disk:
    case Promise::disk_files:
    case Promise::no_core_dumps:
    case Promise::changes:
    case Promise::one_grant:
      break;
  }
  return {};
}

/// The command to run: one that ends at once. A policy that allows only some commands is tried with
/// one of those.
plan::RunRequest request_of(const host::Host& host, const policy::Policy& policy) {
  plan::RunRequest request;
  request.after_dashes = true;
  request.stdin_mode = plan::StdinMode::null;
  if (!policy.interpreters.allow.empty()) {
    request.operands = {policy.interpreters.allow.front().value, "--version"};
    return request;
  }
  const bool merged = host.files->look("/usr/bin/true").has_value();
  request.operands = {merged ? "/usr/bin/true" : "/bin/true"};
  return request;
}

Texts error_texts(const Error& error) {
  return {"error", error.code, error.text(), error.hint.substr(0, error.hint.find('\n'))};
}

/// "cgroup v1", for messages.
std::string means_words(host::Means means, const char* without) {
  switch (means) {
    case host::Means::cgroup_v1:
      return "cgroup v1";
    case host::Means::cgroup_v2:
      return "cgroup v2";
    case host::Means::none:
      break;
  }
  return without;
}

/// What enforces each of kBudgets if nothing is degraded.
Texts means_of(const plan::Plan& plan, const Outcome& outcome) {
  const host::ControlGroup& group = plan.control_group;
  const bool counts_itself = outcome.cpu_time_means == "task-clock";
  return {means_words(group.memory, "polled"),
          means_words(group.cpu_time, counts_itself ? "task clock" : "summed by process"),
          means_words(group.cpus, "CPU affinity"),
          means_words(group.processes, plan.counts_tasks ? "counted by sbx" : "RLIMIT_NPROC"),
          "size of a private tmpfs"};
}

/// In a child: a process can supervise only one run.
Texts run_it(const host::Host& host, const policy::Policy& policy) {
  run::Request request{
      .policy = policy, .program = request_of(host, policy), .capture = true, .trial = true};
  const run::Answer answer = run::launch(request);
  if (!answer.outcome) return error_texts(answer.errors.front());
  const Outcome& outcome = *answer.outcome;
  Texts texts{"ran", std::to_string(exit_status_of(outcome.verdict)), outcome.detail};
  std::ranges::move(means_of(*answer.plan, outcome), std::back_inserter(texts));
  for (const auto* list : {&answer.plan->degraded, &outcome.degraded})
    for (const Degraded& item : *list) {
      texts.push_back(item.what());
      texts.push_back(item.why);
      texts.push_back(item.instead);
    }
  return texts;
}

Finding weaker_or_ok(Finding finding, const Texts& texts) {
  constexpr std::size_t kMeans = 3;
  constexpr std::size_t kHead = kMeans + kBudgets.size();
  constexpr std::size_t kEach = 3;
  finding.fact = "runs here";
  if (texts.size() >= kHead)
    finding.means.assign(texts.begin() + kMeans,
                         texts.begin() + static_cast<std::ptrdiff_t>(kHead));
  for (std::size_t at = kHead; at + kEach <= texts.size(); at += kEach) {
    Degraded item = Degraded::named(texts[at]);
    if (std::ranges::find(finding.degraded, texts[at], &Degraded::what) == finding.degraded.end())
      finding.fact += (finding.degraded.empty() ? "; weaker enforcement: " : ", ") + texts[at];
    item.why = texts[at + 1];
    item.instead = texts[at + 2];
    finding.degraded.push_back(std::move(item));
    finding.state = State::weaker;
  }
  return finding;
}

Finding interpreter(const host::Host& host, const policy::Policy& policy, const std::string& name,
                    const std::string& extensions) {
  plan::RunRequest request;
  request.operands = {name};
  request.after_dashes = true;
  const auto plan = plan::make_plan(policy, host, request);
  Finding finding{.name = name};
  if (!plan) {
    finding.state = State::missing;
    finding.fact = plan.error().text();
    finding.consequence = fmt::format("scripts {} can't be run", extensions);
    finding.code = plan.error().code;
    finding.cure = "install it, or name another under [interpreters.extensions]";
    return finding;
  }
  finding.fact = plan->executable;
  if (!plan->interpreter.prefix.empty())
    finding.fact += fmt::format(", with what it needs of {}", plan->interpreter.prefix);
  return finding;
}

}  // namespace

std::vector<Finding> examine_interpreters(const host::Host& host, const policy::Policy& policy) {
  if (host.emulated) return {};  // no plan is made there, and installing one would not help
  std::map<std::string, std::string> extensions;
  for (const auto& [extension, commands] : policy.interpreters.extensions)
    for (const std::string& command : commands.value)
      (extensions[command] += extensions[command].empty() ? "*." : ", *.") += extension;
  std::vector<Finding> list;
  for (const auto& [name, endings] : extensions)
    list.push_back(interpreter(host, policy, name, endings));
  return list;
}

std::vector<Finding> examine_means(const std::vector<Finding>& policies) {
  std::vector<Finding> list;
  if (std::ranges::all_of(policies, [](const auto& each) { return each.state == State::missing; }))
    return list;
  // The machine is the same for all of them.
  const auto known =
      std::ranges::find_if(policies, [](const auto& each) { return !each.means.empty(); });
  for (std::size_t i = 0; i < kBudgets.size(); ++i)
    list.push_back(
        {.name = std::string(kBudgets[i]), .fact = known == policies.end() ? "" : known->means[i]});
  for (const Finding& policy : policies) {
    for (const Degraded& item : policy.degraded) {
      auto place = std::ranges::find(list, item.what(), &Finding::name);
      if (place == list.end()) place = list.insert(place, Finding{.name = item.what()});
      if (place->cure == kControllerCure) continue;  // the controller counts sockets too
      if (place->state == State::weaker) {
        if (!place->fact.contains(item.why)) place->fact += "; " + item.why;
        if (!place->consequence.contains(item.instead)) place->consequence += "; " + item.instead;
        continue;
      }
      *place = {.name = item.what(),
                .state = State::weaker,
                .fact = item.why,
                .consequence = item.instead,
                .cure = std::string(cure_of(item))};
    }
  }
  return list;
}

Finding try_policy(const host::Host& host, const policy::Policy& policy) {
  const Texts texts = ask_child([&] { return run_it(host, policy); });
  Finding finding{.name = policy.name.value};
  if (texts.size() >= 3 && texts[0] == "ran" && texts[1] == "0")
    return weaker_or_ok(std::move(finding), texts);
  finding.state = State::missing;
  finding.consequence = "sbx run under it ends with 125";
  if (texts.size() == 4 && texts[0] == "error") {
    finding.code = texts[1];
    finding.fact = texts[2];
    finding.cure = texts[3];
  } else {
    const bool ran = texts.size() >= 3;
    finding.fact =
        ran ? "a trial ended with " + texts[1] + (texts[2].empty() ? "" : ": " + texts[2])
            : "a trial did not end";
    if (ran) finding.consequence = "commands may fail under it";
  }
  return finding;
}

}  // namespace sbx::doctor
