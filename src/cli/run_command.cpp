#include "cli/run_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <functional>
#include <optional>

#include "base/progress.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/github.hpp"
#include "cli/live_denials.hpp"
#include "cli/parent.hpp"
#include "cli/report.hpp"
#include "cli/split.hpp"
#include "cli/start_progress.hpp"
#include "cli/usage.hpp"
#include "host/host.hpp"
#include "host/state.hpp"
#include "policy/locate.hpp"
#include "record/event_writer.hpp"
#include "record/kept.hpp"
#include "record/record.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "run/under_way.hpp"
#include "run/user_settings.hpp"

namespace sbx::cli {
namespace {

[[nodiscard]] Error json_with_github() {
  return {.kind = ErrorKind::usage,
          .code = "usage",
          .message = "--github is for a log that people read, --json for a program",
          .hint = "write the record beside the log: --report FILE"};
}

/// Blocks signals once the record is complete: a later signal must not change the exit status that
/// the record reports. They stay unblocked before a write that may wait for its reader, so that sbx
/// can still be ended.
void hold_signals() {
  (void)signals::take();  // nobody reads them
}

std::string stage_lines(const std::vector<Stamp>& stamps) {
  std::string text;
  for (const Stamp& each : stamps)
    text += fmt::format("sbx: {:>8} us  {}\n", each.microseconds, each.stage);
  return text;
}

/// One `sbx run`: turns the command line into a request, and the answer into messages, record and
/// exit status.
class RunCommand {
 public:
  RunCommand(const Invocation& typed, const OwnProcess& process)
      : typed_(typed),
        process_(process),
        paint_(paint_for(typed.output.color, STDERR_FILENO)),
        silent_(typed.output.quiet || (typed.output.json && !typed.output.verbose)) {
    request_.program = typed.request;
    request_.bring_out = typed.bring_out;
  }

  int refuse(const Error& error) {
    const auto refusal = [&] {
      if (const auto prepared = prepare_report(); !prepared)
        (void)tell(prepared.error());  // the first error decides
      return could_not(error);
    };
    return typed_.output.github && !typed_.output.json ? fenced(refusal) : refusal();
  }

  int run() {
    if (!typed_.output.github) return steps();
    if (typed_.output.json) return refuse(json_with_github());
    return fenced([this] { return steps(); });
  }

 private:
  int fenced(const std::function<int()>& act) {
    auto fence = GithubFence::raise();
    if (!fence) return could_not(fence.error());
    const int status = act();
    // Everything that quotes the program has been printed within the fence.
    // stderr is the same stream: nobody can be told why.
    const Status lowered = fence->lower();
    if (!lowered && lowered.error().errno_value != EPIPE) return exit_status::kCouldNot;
    if (!annotation_.empty())
      console().tell("::error title=sbx::" + github_data(annotation_) + "\n");
    return status;
  }

  int steps() {
    if (typed_.die_with_parent) parent_ = open_parent();
    // First, so that the record includes every later error.
    if (const auto prepared = prepare_report(); !prepared) return could_not(prepared.error());
    if (const auto given = check_program_input(typed_); !given) return could_not(given.error());
    complete_request();
    if (typed_.output.dry_run) return dry_run();
    answer_ = run::launch(request_, sinks());
    tell_stages();
    if (!answer_.errors.empty()) tell(answer_.errors);
    return report(exit_status_of(answer_));
  }

  run::Sinks sinks() {
    if (!progress_) progress_.emplace(STDERR_FILENO, silent_);
    run::Sinks sinks = sinks_of(*progress_);
    sinks.ended = [this](const run::Answer& answer) { describe(answer); };
    sinks.silent = silent_;
    sinks.paint = paint_;
    sinks.person = console().person();
    return sinks;
  }

  void complete_request() {
    request_.policies = typed_.policies;
    for (const auto* list : {&typed_.sets, &typed_.named, &typed_.allow_hosts})
      request_.overrides.insert(request_.overrides.end(), list->begin(), list->end());
    request_.variables = typed_.variables;
    request_.capture = typed_.output.json;
    request_.for_person = !silent_ && ::isatty(STDERR_FILENO) == 1;
    request_.lists_changes = targets_.any();
    request_.readers = targets_.readers();
    request_.parent = parent_.get();
    request_.arguments = process_.arguments;
    request_.started_microseconds = process_.started;
  }

  /// If a report target can't be written, stdout still gets the record.
  Status prepare_report() {
    auto targets = ReportTargets::prepare(typed_.output);
    targets_ = targets ? std::move(*targets) : ReportTargets::stdout_only(typed_.output);
    request_.id = run::make_run_id();
    if (!targets) return fail(std::move(targets.error()));
    if (typed_.output.events_fd >= 0)
      request_.events = &events_.emplace(typed_.output.events_fd, process_.started);
    if (!silent_ && ::isatty(STDERR_FILENO) == 1 && !typed_.request.interactive)
      request_.events = &live_.emplace(request_.events, paint_);
    return {};
  }

  int dry_run() {
    answer_ = run::plan_only(request_, sinks());
    if (!answer_.errors.empty()) {
      tell(answer_.errors);
      return report(exit_status_of(answer_));
    }
    const std::string text = typed_.output.json
                                 ? record::plan_text(answer_)
                                 : record::plan_words(*answer_.policy, *answer_.plan);
    tell_stages();
    return console().print(text) ? 0 : exit_status::kCouldNot;
  }

  /// After the command has ended.
  void describe(const run::Answer& answer) {
    const Outcome& outcome = *answer.outcome;
    if (sbx::exit_status_of(outcome.verdict) != 0)
      annotation_ = outcome.detail.empty() ? "the command failed" : outcome.detail;
    const std::string words =
        silent_ ? ""
                : record::outcome_words(*answer.plan, outcome, typed_.output.verbose, paint_,
                                        nullptr, answer.policy ? &*answer.policy : nullptr);
    if (!words.empty())
      console().tell(words);
    else if (is_in_line(outcome.out) || is_in_line(outcome.err))
      progress_->clear(true);  // what the program said last stays
    if (silent_ && !answer.plan->weaker_isolation.empty() && !has_typed_landlock())
      console().tell(note_lines({answer.plan->weaker_isolation}));
    if (!silent_ && sbx::exit_status_of(outcome.verdict) != 0) tell_own_options(answer);
  }

  [[nodiscard]] static bool is_in_line(const Stream& said) {
    return !said.last.empty() && !said.last.ends_with('\n');
  }

  /// A weaker wall is never silent by habit: -q is for those who asked for it just now.
  [[nodiscard]] bool has_typed_landlock() const {
    return typed_.output.quiet &&
           std::ranges::any_of(typed_.named, [](const policy::Override& each) {
             return each.option == "--isolation" && each.toml.contains("landlock");
           });
  }

  /// "sbx run chart.py -p python": the words after the script are the script's. Told where one of
  /// them names a policy that sbx has, where the script reads no words at all, or where the program
  /// says itself that it does not know it.
  void tell_own_options(const run::Answer& answer) const {
    const std::vector<std::string>& words = typed_.request.operands;
    if (typed_.request.after_dashes) return;
    const bool is_script = !answer.plan->interpreter.path.empty();
    const bool is_deaf = is_script && words.size() > 1 && reads_no_words(words.front());
    for (std::size_t at = 1; at < words.size(); ++at) {
      const std::string option = own_option(words, at);
      if (option.empty()) continue;
      const bool is_policy =
          is_script && at + 1 < words.size() && (words[at] == "-p" || words[at] == "--policy") &&
          std::ranges::any_of(policy::builtins(),
                              [&](const auto& each) { return each.name == words[at + 1]; });
      const std::string name = words[at].substr(0, words[at].find('='));
      if (!is_policy && !is_deaf && !says_unknown(answer.outcome->err.last, name) &&
          !says_unknown(answer.outcome->out.last, name))
        continue;
      const std::string program = printable(shell_word(words.front()));
      return console().tell(note_lines({fmt::format(
          "\"{0}\" went to {1}, as every word after it; if it is meant for sbx: sbx run {0} {1}",
          printable(option), program)}));
    }
  }

  /// In no language a script reads its command line without one of these.
  static bool reads_no_words(const std::string& script) {
    constexpr std::size_t kMost = 1 << 20;
    constexpr auto kWords = std::to_array<std::string_view>(
        {"arg", "ARG", "Arg", "opt", "click", "typer", "fire", "$@", "$*", "$1", "${", "shift"});
    const UniqueFd file(::open(script.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat facts{};
    if (!file.valid() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
        static_cast<std::size_t>(facts.st_size) > kMost)
      return false;
    const auto text = sys::read_all(file.get(), kMost);
    return text && std::ranges::none_of(
                       kWords, [&](std::string_view each) { return text->contains(each); });
  }

  /// The option of `sbx run` at `words[at]` with its value, as a shell takes it; empty: none of its
  /// names is that.
  static std::string own_option(const std::vector<std::string>& words, std::size_t at) {
    const std::string& word = words[at];
    const auto equals = word.find('=');
    const auto command = std::ranges::find(commands(), std::string_view("run"), &CommandRow::name);
    const OptionRow* const row = word.starts_with("--") || word == "-p"
                                     ? find_option(*command, word.substr(0, equals))
                                     : nullptr;
    if (row == nullptr) return {};
    const std::string_view value = row->value;
    const bool has_next = equals == std::string::npos && !value.empty() && !value.starts_with('[');
    if (has_next && at + 1 == words.size()) return {};
    return shell_word(word) + (has_next ? " " + shell_word(words[at + 1]) : "");
  }

  /// A line of a program's last output that says, in the words of the usual readers of command
  /// lines, that it does not know the option.
  static bool says_unknown(std::string_view text, const std::string& name) {
    constexpr auto kWords = std::to_array<std::string_view>(
        {"unrecognized", "unrecognised", "not recognized", "no such option", "unknown option",
         "unknown argument", "unknown flag", "unexpected argument", "invalid option", "bad option",
         "illegal option"});
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (!line.contains(name)) continue;
      for (char& c : line) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (std::ranges::any_of(kWords, [&](std::string_view each) { return line.contains(each); }))
        return true;
    }
    return false;
  }

  void tell_stages() const {
    if (typed_.output.trace_time) console().tell(stage_lines(answer_.stamps));
  }

  void tell(const policy::Findings& errors) {
    annotation_ = errors.front().text();
    console().tell(record::findings_text(errors, paint_));
  }

  int tell(const Error& error) {
    tell(policy::Findings{error});
    return sbx::exit_status_of(error);
  }

  /// Nothing ran: reports the error once on stderr and once in the record.
  int could_not(const Error& error) {
    const int status = tell(error);
    answer_.errors = {error};
    return report(status);
  }

  /// The record is part of the job: failure to deliver it is a failure of sbx, unless sbx had
  /// already failed.
  int report(int status) {
    const bool keeps = keeps_record();
    if (events_) {
      events_->ended(answer_, status);
      if (const auto& lost = events_->failure()) status = tell(*lost);
    }
    if (!targets_.any() && !keeps) return status;
    const std::string record = record::record_text(request_, answer_);
    if (keeps) keep(record);
    if (!targets_.any()) return status;
    if (targets_.take_at_once(record.size())) hold_signals();
    const Status written = targets_.write(record);
    hold_signals();
    if (written) return status;
    console().tell(record::error_text(written.error(), paint_));
    return exit_status::kCouldNot;
  }

  /// If the run failed before its settings were read, reads them now.
  bool keeps_record() {
    if (answer_.keeps_record) return *answer_.keeps_record;
    const auto host = host::probe();
    if (!host) return false;
    answer_.state_directory = host::state_directory(*host);
    const auto settings = run::user_settings(*host);
    return settings && settings->keeps_record;
  }

  /// Keeps the record for `sbx why`. A convenience: failure is reported and changes nothing else.
  void keep(const std::string& record) {
    if (answer_.state_directory.empty()) return;
    if (const Status kept = record::keep_record(answer_.state_directory, record); !kept)
      console().tell(note_lines({"the record is not kept: " + kept.error().text()}));
  }

  const Invocation& typed_;
  OwnProcess process_;
  Paint paint_;
  bool silent_;
  ReportTargets targets_;
  UniqueFd parent_;  ///< --die-with-parent
  std::optional<record::EventWriter> events_;
  std::optional<LiveDenials> live_;
  run::Request request_;
  run::Answer answer_;
  std::optional<Progress> progress_;
  std::string annotation_;  ///< --github: the failure in one message
};

}  // namespace

int run_command(const Invocation& typed, const OwnProcess& process) {
  return RunCommand(typed, process).run();
}

Status check_program_input(const Invocation& typed) {
  const auto& request = typed.request;
  if (typed.open_stdin && !typed.detach)
    return usage("usage", "--stdin open is for a call in the background, which others send input",
                 "sbx session exec -d --stdin open; a file of that name is ./open");
  if (typed.open_stdin && request.code_from_stdin)
    return usage("usage", "--stdin open and the operand - exclude each other",
                 "-c CODE; standard input is then what sbx session send sends");
  if (typed.open_stdin) return {};
  if (!request.code_from_stdin || request.stdin_mode != plan::StdinMode::inherit) return {};
  if (!request.interactive && ::isatty(STDIN_FILENO) == 1)  // the program would be empty
    return usage("cannot-read", "the program comes from standard input, which is a terminal",
                 "-c CODE, a file, or a pipe: sbx run --lang python - < FILE; -i gives a prompt");
  const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_WRONLY) return {};
  return usage("cannot-read", "the program comes from standard input, which is closed",
               "a file or a pipe: sbx run --lang python - < FILE");
}

int refuse_run(const Invocation& typed, const Error& error) {
  return RunCommand(typed, {}).refuse(error);
}

}  // namespace sbx::cli
