#include "record/words.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "lib/members.hpp"
#include "record/codes.hpp"
#include "record/limit_texts.hpp"
#include "record/network_words.hpp"
#include "record/parts.hpp"
#include "record/record.hpp"

namespace sbx::record {
namespace {

constexpr std::size_t kDenialsShown = 10;
constexpr std::size_t kWidestSourceLine = 200;
constexpr std::size_t kLongestLine = 240;  // of a message, without its label
constexpr std::string_view kCpuTimeOfSession = "session.cpu_time";

template <class... Parts>
void say(std::string& text, fmt::format_string<Parts...> format, Parts&&... parts) {
  text += "sbx: ";
  fmt::format_to(std::back_inserter(text), format, std::forward<Parts>(parts)...);
  text += '\n';
}

/// The length of the token at the caret: a word, a quoted string or one character.
std::size_t token_length(std::string_view rest) {
  if (rest.empty()) return 1;
  if (rest.front() == '"' || rest.front() == '\'') {
    const auto end = rest.find(rest.front(), 1);
    return end == std::string_view::npos ? 1 : end + 1;
  }
  std::size_t length = 0;
  while (length < rest.size() &&
         (std::isalnum(static_cast<unsigned char>(rest[length])) != 0 || rest[length] == '_' ||
          rest[length] == '-' || rest[length] == '.'))
    ++length;
  return std::max<std::size_t>(1, length);
}

void append_source(std::string& text, const Error& error, const Paint& paint) {
  const Origin& origin = *error.origin;
  text += fmt::format("  {} {}:{}{}\n", paint.blue("-->"),
                      shortened(printable(origin.file), kLongestLine), origin.line,
                      origin.column > 0 ? fmt::format(":{}", origin.column) : "");
  if (error.source_line.empty() || error.source_line.size() > kWidestSourceLine) return;
  const std::string number = std::to_string(origin.line);
  const std::string bar = paint.blue("|");
  std::string line = error.source_line;
  std::replace(line.begin(), line.end(), '\t', ' ');
  text += fmt::format("{:>{}} {}\n", "", number.size() + 1, bar);
  text += fmt::format(" {} {} {}\n", paint.blue(number), bar, printable(line));
  const auto column = static_cast<std::size_t>(std::max(1, origin.column)) - 1;
  if (origin.column == 0 || column > line.size()) return;
  const std::string caret(token_length(std::string_view(line).substr(column)), '^');
  text +=
      fmt::format("{:>{}} {} {:{}}{}\n", "", number.size() + 1, bar, "", column, paint.red(caret));
}

struct VerdictSentence {
  const Outcome& outcome;

  std::string operator()(const Exited&) const { return {}; }
  std::string operator()(const Signaled& end) const {
    return otherwise(fmt::format("killed by {}", signal_name(end.signal)));
  }
  std::string operator()(const OverBudget& end) const {
    return "stopped: " + otherwise(fmt::format("limits.{} reached", name_of(end.budget)));
  }
  std::string operator()(const Denied& end) const {
    return "stopped: " + otherwise(fmt::format("{} is denied", end.call));
  }
  std::string operator()(const Cancelled& end) const {
    return otherwise(fmt::format("cancelled by {}", signal_name(end.signal)));
  }
  std::string operator()(const Lost&) const {
    return "lost: " + otherwise("the sandbox's init was killed from outside");
  }
  [[nodiscard]] std::string otherwise(std::string own) const {
    return outcome.detail.empty() ? own : printable(outcome.detail);
  }
};

std::string times(std::uint64_t count) {
  return count > 1 ? fmt::format(", {} times", count) : "";
}

/// A path that --explain saw.
std::string looked_for(const Denial& denial, const Paint& paint) {
  if (denial.process.empty())
    return fmt::format("{}: {}", printable(denial.what), printable(denial.rule));
  const bool hidden = denial.allow_with.empty();
  return fmt::format("{} looked for {}{}, {}", printable(denial.process),
                     paint.bold(printable(denial.what)), times(denial.count),
                     hidden ? "which filesystem.deny hides" : "which the policy does not grant");
}

std::string refused(const Denial& denial, const Paint& paint) {
  const std::string by =
      denial.process.empty() ? "" : fmt::format(" by {}", printable(denial.process));
  const std::string rule = denial.rule.empty() ? "" : fmt::format(": {}", printable(denial.rule));
  return fmt::format("{} {}{}{}{}", paint.bold("denied:"), printable(denial.what), by,
                     times(denial.count), rule);
}

constexpr std::string_view kStartWith = ", start the session with";

void append_denials(std::string& text, const std::vector<Denial>& denials, const Paint& paint,
                    Cured where) {
  bool paths = false;
  for (std::size_t i = 0; i < denials.size() && i < kDenialsShown; ++i) {
    const Denial& denial = denials[i];
    const bool was_refused = is_refusal(denial.kind);
    paths |= !was_refused;
    say(text, "{}", was_refused ? refused(denial, paint) : looked_for(denial, paint));
    if (const std::string cure = cure_of_denial(denial); !cure.empty())
      say(text, "  to allow it{}: {}{}", where == Cured::session ? kStartWith : "", cure,
          denial.risk.empty() ? "" : fmt::format("  # {}", printable(denial.risk)));
  }
  if (paths) say(text, "note: observed by tracing; a program can fake such look-ups");
  if (denials.size() > kDenialsShown)
    say(text, "and {} more denials: the record (--json) has them all",
        denials.size() - kDenialsShown);
}

void append_network_failures(std::string& text, const std::vector<NetworkFailure>& failures,
                             const Paint& paint) {
  for (std::size_t i = 0; i < failures.size() && i < kDenialsShown; ++i) {
    const NetworkFailure& failure = failures[i];
    say(text, "{} {}{}{}", paint.bold("network:"), printable(failure.what),
        failure.why.empty() ? " failed" : ": " + printable(failure.why), times(failure.count));
  }
  if (failures.size() > kDenialsShown)
    say(text, "network: and {} more destinations failed: --report FILE has them all",
        failures.size() - kDenialsShown);
}

std::string refusal_of(const LimitMet& met) {
  if (met.limit == "disk" && met.peak.value_or(0) > met.value) return "more was written";
  if (met.limit == "disk_files" && met.peak.value_or(0) > met.value) return "more were made";
  const LimitText* limit = find_limit(met.limit);
  return limit == nullptr || limit->refusal.empty() ? "more was refused"
                                                    : std::string(limit->refusal);
}

/// The verdict already names this limit.
bool is_verdict(const LimitMet& met, const Verdict& verdict) {
  const auto* over = std::get_if<OverBudget>(&verdict);
  if (over == nullptr) return false;
  return over->budget == Budget::disk ? met.limit.starts_with("disk")
                                      : met.limit == name_of(over->budget);
}

std::uint64_t count_of(Bytes value) {
  return value.count;
}
std::uint64_t count_of(Milliseconds value) {
  return static_cast<std::uint64_t>(value.count());
}
template <class Number>
std::uint64_t count_of(Number value) {
  return static_cast<std::uint64_t>(value);
}

/// Where the limits of a command are from, and so what raises them.
struct Limits {
  const policy::Policy* policy = nullptr;
  const plan::Plan* session = nullptr;  ///< null: it is not a call

  /// True where the call has a smaller limit than its session, of its own.
  [[nodiscard]] bool is_own(std::string_view limit, std::uint64_t value) const {
    const std::uint64_t most = of_session(limit);
    return most > 0 && value != most;
  }
  /// 0: there is no session, or it has no such limit.
  [[nodiscard]] std::uint64_t of_session(std::string_view limit) const {
    std::uint64_t value = 0;
    if (session != nullptr)
      with_budget(session->budgets, limit, [&](auto is) { value = count_of(is); });
    return value;
  }
  [[nodiscard]] std::string cure(const LimitText& limit, std::uint64_t value) const {
    return cure_of(limit, value, option_that_set(policy, "limits." + std::string(limit.name)),
                   is_own(limit.name, value) ? of_session(limit.name) : 0);
  }
};

void append_limit(std::string& text, const LimitMet& met) {
  say(text, "limit reached: limits.{} = {}; {}", met.limit, toml_value(met.limit, met.value),
      refusal_of(met));
}

void append_limits(std::string& text, const Outcome& outcome, Cured where, const Limits& limits) {
  for (const LimitMet& met : outcome.limits_met) {
    if (met.limit == "memory" || is_verdict(met, outcome.verdict)) continue;
    append_limit(text, met);
    if (const LimitText* const limit = find_limit(met.limit))
      text += more_words(limits.cure(*limit, met.value),
                         limits.is_own(met.limit, met.value) ? Cured::command : where);
  }
}

void append_truncation(std::string& text, const char* name, const Stream& stream,
                       const plan::OutputPlan& plan) {
  const bool captured = stream.text.has_value();
  const Bytes own = name == std::string_view("stderr") ? plan.stderr_cap : plan.stdout_cap;
  const Bytes cap = captured ? own : plan.passed_cap;
  if (!stream.truncated || stream.head_bytes + stream.tail_bytes < cap.count)
    return;  // otherwise a note names the obstacle
  const std::uint64_t kept =
      std::min<std::uint64_t>(stream.bytes, stream.head_bytes + stream.tail_bytes);
  say(text, "{}: {} written, {} left out (output.{} = \"{}\")", name, describe(Bytes{stream.bytes}),
      describe(Bytes{stream.bytes - kept}), captured ? name : "passed", to_text(cap));
}

std::string degraded_words(const Degraded& item) {
  return fmt::format("{}: {}{}", item.what(), item.why,
                     item.instead.empty() ? "" : fmt::format("; instead: {}", item.instead));
}

void append_degraded(std::string& text, const std::vector<Degraded>& degraded) {
  for (const Degraded& item : degraded) say(text, "weaker enforcement: {}", degraded_words(item));
}

/// The cap that ended a run: a stream that is captured has its own.
Bytes cap_of_output(const plan::Plan& plan, const Outcome& outcome) {
  const bool of_stdout = outcome.out.truncated;
  if (!(of_stdout ? outcome.out : outcome.err).text) return plan.output.passed_cap;
  return of_stdout ? plan.output.stdout_cap : plan.output.stderr_cap;
}

/// Each stream has a key of its own; the option covers all.
std::string cure_of_output(const plan::Plan& plan, const Outcome& outcome, const Limits& limits) {
  const LimitText& limit = *find_limit(name_of(Budget::output));
  const Bytes cap = cap_of_output(plan, outcome);
  const Bytes most = limits.session == nullptr ? cap : cap_of_output(*limits.session, outcome);
  return cap < most && most.count / 2 < cap.count
             ? fmt::format("{} {}", limit.option, to_text(most))
             : twice(limit, cap.count);
}

/// What would have let the run continue. Empty if no option would: a limit outside sbx, or usage
/// that can't be measured.
std::string cure_of_verdict(const plan::Plan& plan, const Outcome& outcome, const Limits& limits) {
  const auto* over = std::get_if<OverBudget>(&outcome.verdict);
  if (over == nullptr) return {};
  // All calls share it, and limits.cpu_time is not it.
  if (over->budget == Budget::cpu_time && outcome.detail.contains(kCpuTimeOfSession))
    return fmt::format("a larger {}", kCpuTimeOfSession);
  if (over->budget == Budget::output) return cure_of_output(plan, outcome, limits);
  const Budgets& budgets = plan.budgets;
  const auto was_met = [&](std::string_view name) {
    return std::ranges::find(outcome.limits_met, name, &LimitMet::limit) !=
           outcome.limits_met.end();
  };
  std::string_view name = name_of(over->budget);
  if (over->budget == Budget::memory &&
      (!was_met(name) || plan.control_group.granted.memory_bytes == budgets.memory.count))
    return {};
  if (over->budget == Budget::disk) {
    if (was_met("disk_files")) name = "disk_files";
    if (!was_met(name)) return {};
  }
  std::string cure;
  with_budget(budgets, name,
              [&](auto value) { cure = limits.cure(*find_limit(name), count_of(value)); });
  return cure;
}

std::string mount_words(const plan::Mount& mount) {
  const std::string target = printable(mount.target);
  const std::string access = mount.read_only() ? "read-only" : "writable";
  switch (mount.kind()) {
    case plan::MountKind::directory:
      return fmt::format("directory  {}", target);
    case plan::MountKind::symlink:
      return fmt::format("link       {} -> {}", target, printable(mount.source()));
    case plan::MountKind::file:
      return mount.source().empty()
                 ? fmt::format("file       {} (made by sbx)", target)
                 : fmt::format("file       {} a copy of {}", target, printable(mount.source()));
    case plan::MountKind::bind:
      return fmt::format(
          "bind       {} {}{}", target, access,
          mount.source() == mount.target ? "" : ", from " + printable(mount.source()));
    case plan::MountKind::overlay:
      return fmt::format("overlay    {} {}", target,
                         mount.read_only() ? "read-only" : "copy-on-write");
    case plan::MountKind::device:
      return fmt::format("device     {}", target);
    case plan::MountKind::scratch:
      return fmt::format("private    {}", target);
    case plan::MountKind::proc:
      return fmt::format("proc       {}", target);
    case plan::MountKind::outer_proc:
      return fmt::format("proc       {} the caller's, a few files of it", target);
    case plan::MountKind::devpts:
      return fmt::format("terminals  {}", target);
    case plan::MountKind::mask_file:
    case plan::MountKind::mask_directory:
      return fmt::format("hidden     {}", target);
    case plan::MountKind::read_only:
      return fmt::format("read-only  {}", target);
    case plan::MountKind::content:
      return fmt::format("copy       {} without its credentials, read-only", target);
    case plan::MountKind::copy:
      return fmt::format("copy       {} made when the run begins", target);
    case plan::MountKind::pinned:
      return fmt::format("pinned     {}", target);
  }
  return target;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string error_text(const Error& error, const Paint& paint) {
  std::string message = error.message;
  if (error.errno_value != 0) message += fmt::format(": {}", ::strerrordesc_np(error.errno_value));
  std::string text;
  const bool placed = error.origin && !error.origin->file.empty() && error.origin->line > 0;
  const std::string place = !placed && error.origin && !error.origin->file.empty()
                                ? fmt::format(" ({})", error.origin->text())
                                : "";
  // `sbx policy explain` takes the code.
  const std::string label = error.code.empty() ? "error:" : fmt::format("error[{}]:", error.code);
  say(text, "{} {}", paint.red(label),
      paint.bold(shortened(printable(message + place), kLongestLine)));
  if (placed) append_source(text, error, paint);
  const std::string hint = hint_of(error);
  for (std::string_view rest = hint; !rest.empty();) {  // a line for each way
    const std::size_t end = rest.find('\n');
    text += fmt::format("  {} {}\n", paint.green("help:"),
                        shortened(printable(std::string(rest.substr(0, end))), kLongestLine));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return text;
}

std::string findings_text(const policy::Findings& findings, const Paint& paint) {
  std::string text;
  for (const Error& finding : findings) text += error_text(finding, paint);
  return text;
}

namespace {

void append_appeared(std::string& text, const std::vector<Appeared>& appeared, bool hidden,
                     std::string_view what) {
  constexpr std::size_t kMostNames = 10;
  std::size_t count = 0;
  std::string names;
  for (const Appeared& each : appeared) {
    if (each.is_hidden != hidden || ++count > kMostNames) continue;
    names += fmt::format("  {}\n", printable(each.path));
  }
  if (count == 0) return;
  say(text, "new in a live directory{}", what);
  text += names;
  if (count > kMostNames) text += fmt::format("  and {} more\n", count - kMostNames);
}

/// True if the budget that was exceeded is the session's: a call may have a smaller one of its own.
bool is_of_session(const plan::Plan& plan, const Outcome& outcome, const Limits& limits) {
  if (limits.session == nullptr) return false;
  const auto* over = std::get_if<OverBudget>(&outcome.verdict);
  if (over == nullptr || outcome.detail.contains(kCpuTimeOfSession)) return true;
  if (over->budget == Budget::output)
    return cap_of_output(plan, outcome) == cap_of_output(*limits.session, outcome);
  const std::string_view name = name_of(over->budget);
  bool own = false;
  with_budget(plan.budgets, name, [&](auto value) { own = limits.is_own(name, count_of(value)); });
  return !own;
}

void append_hints(std::string& text, const std::vector<Hint>& hints, Cured where) {
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(hints.size(), kShown); ++i) {
    const Hint& hint = hints[i];
    std::string cure;
    for (const std::string& word : hint.options)
      cure += " " + (word == "DIR" ? word : shell_word(word));
    if (hint.kind == HintKind::lost_file && !cure.empty())
      cure = hint.options.front() == "--apply" ? ";" + cure + " keeps it" : "," + cure + " copies";
    else if (!cure.empty())
      cure = (where == Cured::session ? ": start the session with" : ": add") + cure;
    say(text, "{}{}{}", hint.perhaps ? "perhaps " : "", printable(hint.text), printable(cure));
  }
}

bool has_guess(const std::vector<Hint>& hints) {
  return std::ranges::any_of(hints,
                             [](const Hint& hint) { return hint.kind == HintKind::not_granted; });
}

/// One line for all: `sbx why` has the list.
void append_hazards(std::string& text, const Outcome& outcome) {
  if (outcome.hazards.empty()) return;
  const Hazard& first = outcome.hazards.front();
  const std::uint64_t more = outcome.hazards.size() - 1 + outcome.hazards_left_out;
  say(text, "warning: left in a live grant: {}: {}{}", printable(first.path), first.why,
      more == 0 ? std::string() : fmt::format("; and {} more (sbx why lists them)", more));
}

}  // namespace

std::string outcome_words(const plan::Plan& plan, const Outcome& outcome, bool verbose,
                          const Paint& paint, const plan::Plan* session,
                          const policy::Policy* policy) {
  const Limits limits{.policy = policy, .session = session};
  const Cured where = session != nullptr ? Cured::session : Cured::command;
  std::string text;
  if (verbose) text += note_lines(plan.explanations);
  text += note_lines(plan.notes);  // includes those of the policy
  append_truncation(text, "stdout", outcome.out, plan.output);
  append_truncation(text, "stderr", outcome.err, plan.output);
  append_denials(text, outcome.denials, paint, where);
  append_network_failures(text, outcome.network_failures, paint);
  append_limits(text, outcome, where, limits);
  append_appeared(
      text, outcome.appeared, false,
      ", under names that programs of the host run or trust: look before you work there");
  append_appeared(text, outcome.appeared, true,
                  ", under names that filesystem.deny means: the program could see them");
  append_hazards(text, outcome);
  if (verbose) {
    append_degraded(text, plan.degraded);
    append_degraded(text, outcome.degraded);
  }
  text += note_lines(outcome.notes);
  append_hints(text, outcome.hints, where);
  // Without a root of the sandbox's own, --explain is refused.
  const bool can_explain = where == Cured::command && plan.private_directory.empty();
  if (can_explain && has_guess(outcome.hints)) say(text, "  to be sure: --explain");
  const std::string verdict = std::visit(VerdictSentence{outcome}, outcome.verdict);
  if (!verdict.empty()) say(text, "{}", paint.bold(verdict));
  text += more_words(cure_of_verdict(plan, outcome, limits),
                     is_of_session(plan, outcome, limits) ? Cured::session : Cured::command);
  if (verbose)
    say(text, "{} wall, {} user, {} system", describe(Milliseconds(outcome.usage.wall_ms)),
        describe(Milliseconds(outcome.usage.user_ms)),
        describe(Milliseconds(outcome.usage.system_ms)));
  return text;
}

std::string cure_of_denial(const Denial& denial) {
  if (denial.options.empty()) return printable(denial.allow_with);
  std::string option;
  for (const std::string& word : denial.options)
    option += (option.empty() ? "" : " ") + shell_word(word);
  if (denial.allow_with.empty()) return printable(option);
  return fmt::format("{}, or {} in the policy", printable(option), printable(denial.allow_with));
}

std::string denial_words(const std::vector<Denial>& denials, const Paint& paint, Cured where) {
  std::string text;
  append_denials(text, denials, paint, where);
  return text;
}

std::string failure_words(const std::vector<NetworkFailure>& failures, const Paint& paint) {
  std::string text;
  append_network_failures(text, failures, paint);
  return text;
}

std::string hint_words(const std::vector<Hint>& hints, Cured where) {
  std::string text;
  append_hints(text, hints, where);
  return text;
}

std::string limit_words(const Json& record, Cured where) {
  const auto text_of = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  const std::string end = text_of(part(part(record, "outcome"), "detail"));
  std::string text;
  for (const Json& each : part(record, "limits_met")) {
    if (!each.is_object()) continue;
    const auto met = lib::read_members<LimitMet>(each);
    const LimitText* const limit = find_limit(met.limit);
    const bool is_end = end.contains("(limits." + met.limit + ")");
    if (limit == nullptr || met.limit == "memory" || is_end) continue;
    append_limit(text, met);
    text +=
        more_words(cure_of(*limit, met.value, option_in_rule(text_of(part(each, "rule")))), where);
  }
  return text;
}

std::string more_words(const std::string& cure, Cured where) {
  std::string text;
  if (!cure.empty())
    say(text, "  to allow more{}: {}", where == Cured::session ? kStartWith : "", cure);
  return text;
}

std::string plan_words(const policy::Policy& policy, const plan::Plan& plan) {
  std::string text =
      fmt::format("policy      {} ({})\n", printable(policy.name.value), printable(policy.source));
  text += "command    ";
  for (const std::string& word : plan.command) text += " " + shell_word(word);
  text += fmt::format(
      "\nprogram     {}{}\n", printable(plan.executable),
      plan.interpreter.reason.empty() ? "" : " (" + printable(plan.interpreter.reason) + ")");
  text += fmt::format("directory   {}\n", printable(plan.working_directory));
  text += "variables  ";
  for (const std::string& name : variable_names(plan)) text += " " + printable(name);
  const Budgets& budgets = plan.budgets;
  text += fmt::format(
      "\nlimits      {} wall, {} CPU time, {} CPU{}, {} memory, {} disk, {} processes\n",
      budgets.wall_time.count() > 0 ? describe(budgets.wall_time) : "no limit of",
      describe(budgets.cpu_time), budgets.cpus, budgets.cpus == 1 ? "" : "s",
      describe(budgets.memory), describe(budgets.disk), budgets.processes);
  text += fmt::format("network     {}\n", plan.network.allow_list
                                              ? "what network.allow names, through a gateway"
                                          : plan.network.closed ? "no internet sockets at all"
                                          : plan.network.own_namespace ? "loopback of its own"
                                                                       : "the host's");
  text += fmt::format("filter      {} instructions\n", plan.filter.program.size());
  text += "files\n";
  for (const plan::Mount& mount : plan.mounts) {
    const std::string rule =
        mount.origin.line > 0 ? fmt::format("  # {}", printable(mount.origin.text())) : "";
    text += fmt::format("  {}{}\n", mount_words(mount), rule);
  }
  for (const Degraded& item : plan.degraded)
    text += fmt::format("weaker      {}\n", degraded_words(item));
  for (const std::string& note : plan.notes)
    text += fmt::format("note        {}\n", printable(note));
  return text;
}

}  // namespace sbx::record
