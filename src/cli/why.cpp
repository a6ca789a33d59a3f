#include "cli/why.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <sbx/outcome.hpp>
#include <sbx/units.hpp>

#include "base/sys.hpp"
#include "cli/codes.hpp"
#include "cli/context.hpp"
#include "cli/json.hpp"
#include "cli/kept_record.hpp"
#include "cli/text.hpp"
#include "host/host.hpp"
#include "host/state.hpp"
#include "plan/filter/table.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kLargestRecord = std::size_t{256} << 20;

// A record is read as a stranger's text: whatever is missing or of another type is left out.

std::string text(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

std::optional<std::uint64_t> number(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

const Json& part(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

/// What is known about a limit beyond the record.
struct LimitText {
  std::string_view name;
  std::string_view attempted;  ///< what the program did when it met the limit
  std::string_view option;     ///< the option of run, or the key for --set
  std::string_view risk;       ///< of raising it
};
constexpr auto kLimits = std::to_array<LimitText>({
    {"wall_time", "it ran longer than it may", "--timeout",
     "a program that hangs holds its caller longer"},
    {"cpu_time", "its processes computed longer than they may", "--cpu-time",
     "the machine is busy longer"},
    {"memory", "its processes held more memory than they may", "--memory",
     "the host has less for everything else"},
    {"output", "it printed more than it may", "--output", "logs and records get larger"},
    {"file_size", "it wrote a file larger than it may", "limits.file_size",
     "one file may take the whole disk budget"},
    {"disk", "it wrote more than it may", "--disk",
     "what is written there is memory of the host, unless limits.disk_on is \"folder\""},
    {"disk_files", "it made more files than it may", "limits.disk_files",
     "each file takes some memory of the host"},
    {"processes", "it started more processes or threads than it may", "--processes",
     "a fork bomb gets further"},
    {"open_files", "it opened more files than it may", "limits.open_files",
     "the host's table of open files is shared"},
});

const LimitText* find_limit(std::string_view name) {
  const auto found = std::ranges::find(kLimits, name, &LimitText::name);
  return found == kLimits.end() ? nullptr : &*found;
}

bool is_size(std::string_view limit) {
  return limit == "memory" || limit == "disk" || limit == "file_size" || limit == "output";
}

std::string amount(std::string_view limit, std::uint64_t value) {
  if (is_size(limit)) return describe(Bytes{value});
  if (limit.ends_with("_time")) return describe(Milliseconds(static_cast<std::int64_t>(value)));
  return std::to_string(value);
}

/// Twice as much, as the option or key wants it.
std::string twice(const LimitText& limit, std::uint64_t value) {
  std::string more = std::to_string(value * 2);
  if (is_size(limit.name)) more = to_text(Bytes{value * 2});
  if (limit.name.ends_with("_time"))
    more = to_text(Milliseconds(static_cast<std::int64_t>(value * 2)));
  if (limit.option.starts_with("--")) return fmt::format("{} {}", limit.option, more);
  return fmt::format("--set '{}={}'", limit.option,
                     is_size(limit.name) ? "\"" + more + "\"" : more);
}

/// Writes the parts of one explanation.
class Teller {
 public:
  Teller(const Json& record, const Paint& paint) : record_(record), paint_(paint) {}

  std::string tell() {
    head();
    outcome();
    denials();
    limits();
    hazards();
    streams();
    degraded();
    return std::move(text_);
  }

 private:
  void line(std::string_view label, const std::string& value, std::string_view indent = "  ") {
    if (!value.empty()) text_ += fmt::format("{}{:<11}{}\n", indent, label, value);
  }
  void detail(std::string_view label, const std::string& value) { line(label, value, "    "); }
  void title(const std::string& words) { text_ += "\n" + paint_.bold(words) + "\n"; }

  void head() {
    std::string command;
    const Json& words = part(record_, "command");
    if (words.is_array())
      for (const Json& word : words)
        if (word.is_string()) command += " " + printable(word.get<std::string>());
    const Json& policy = part(record_, "policy");
    const std::string name = text(policy, "name");
    text_ +=
        fmt::format("{}{}{}\n", text(record_, "id"), command,
                    name.empty() ? ", without a valid policy"
                                 : fmt::format(", under {} ({})", name, text(policy, "source")));
  }

  // --- how it ended

  void outcome() {
    const Json& outcome = part(record_, "outcome");
    const std::string status = text(outcome, "status");
    title("How it ended");
    const std::string sentence = text(outcome, "detail");
    if (status == "exited") return exited(outcome);
    if (status == "signaled") return signaled(outcome, sentence);
    text_ += fmt::format("  {}: {}\n", status, sentence.empty() ? "no more is known" : sentence);
    if (status == "over-budget") return over_budget(outcome);
    if (status == "setup-failed") return setup_failed(outcome);
    if (status == "denied")
      line("decided", "syscalls.denied = \"kill\": a refused call ends the run");
    if (status == "cancelled")
      line("decided", "sbx was told to stop; whatever the program returned, this is the outcome");
  }

  void exited(const Json& outcome) {
    const std::uint64_t code = number(outcome, "exit_code").value_or(0);
    text_ += fmt::format("  the command exited with {} by itself\n", code);
    if (code == 0) return;
    const bool refused = !part(record_, "denials").empty() || !part(record_, "limits_met").empty();
    text_ +=
        refused ? "  what was refused below may be the reason\n"
                : "  sbx knows of no refusal: the reason is the program's own, a file that was not "
                  "granted and looks absent, or a limit that only the program was told of\n";
    if (!refused)
      line("to see", "its own messages; sbx run --dry-run shows which files it was given");
  }

  void signaled(const Json& outcome, const std::string& sentence) {
    const auto signal = static_cast<int>(number(outcome, "signal").value_or(0));
    const char* name = ::sigabbrev_np(signal);
    text_ += fmt::format("  the command died of {} by itself{}\n",
                         name != nullptr ? fmt::format("SIG{}", name) : std::to_string(signal),
                         sentence.empty() ? "" : ": " + sentence);
    if (signal == SIGSYS)
      line("decided", "a call of a foreign architecture: the filter ends the process");
    if (signal == SIGXFSZ) line("decided", "limits.file_size");
  }

  [[nodiscard]] bool was_met(std::string_view limit) const {
    const Json& list = part(record_, "limits_met");
    return list.is_array() &&
           std::ranges::any_of(list, [&](const Json& met) { return text(met, "limit") == limit; });
  }

  /// A live grant, where only what a process lets be read of it can be counted.
  void not_counted(const Json& outcome) {
    line("attempted", "it wrote, or could, what sbx can't count");
    line("decided", text(outcome, "rule"));
    line("to allow",
         "a copy in place of the live grant (--workspace DIR:overlay): there the kernel counts");
  }

  void over_budget(const Json& outcome) {
    std::string reason = text(outcome, "reason");
    if (reason == "disk" && was_met("disk_files")) reason = "disk_files";
    if (reason == "disk" && !was_met("disk")) return not_counted(outcome);
    const LimitText* limit = find_limit(reason);
    if (limit == nullptr) return;
    const Json& limits = part(record_, "limits");
    const std::string unit = reason.ends_with("_time") ? "_ms" : is_size(reason) ? "_bytes" : "";
    auto value = number(limits, (reason + unit).c_str());
    if (reason == "output") value = output_cap();
    line("attempted", std::string(limit->attempted));
    line("decided", text(outcome, "rule"));
    if (value) line("to allow", twice(*limit, *value));
    line("risk", std::string(limit->risk));
  }

  [[nodiscard]] std::optional<std::uint64_t> output_cap() const {
    for (const char* name : {"stdout", "stderr"})
      if (part(part(record_, name), "truncated") == true)
        return number(part(record_, "limits"), (std::string(name) + "_bytes").c_str());
    return std::nullopt;
  }

  void setup_failed(const Json& outcome) {
    const std::string code = text(outcome, "code");
    line("means", "nothing ran");
    const CodeText* known = find_code(code);
    line("code",
         code.empty() || known == nullptr ? code : fmt::format("{}: {}", code, known->meaning));
    const std::string hint = text(outcome, "hint");
    if (!hint.empty())
      line("cure", hint);
    else if (known != nullptr)
      line("cure", std::string(known->cure));
    if (text(outcome, "reason") == "host") line("see", "sbx doctor");
  }

  // --- what was refused

  /// What a denied call would do, from the table of calls; its name stands before "(".
  static std::string purpose(const std::string& what) {
    const plan::Call* call = plan::find_call(std::string_view(what).substr(0, what.find('(')));
    return call == nullptr ? ""
                           : fmt::format("{} ({})", call->reason, plan::text_of(call->group).name);
  }

  static std::string attempt_of(const Json& denial) {
    const std::string kind = text(denial, "kind");
    const std::string what = text(denial, "what");
    if (kind == "syscall") return purpose(what);
    if (kind == "network") return "to reach " + what;
    if (kind == "path") return "to find " + what;
    return kind;
  }

  void denials() {
    const Json& list = part(record_, "denials");
    if (!list.is_array() || list.empty()) return;
    title("What was refused");
    for (const Json& denial : list) {
      const std::uint64_t count = number(denial, "count").value_or(1);
      const std::string process = text(denial, "process");
      text_ += fmt::format("  {}{}{}\n", paint_.bold(text(denial, "what")),
                           process.empty() ? "" : " by " + process,
                           count > 1 ? fmt::format(", {} times", count) : "");
      detail("attempted", attempt_of(denial));
      detail("decided", text(denial, "rule"));
      const std::string allow = text(denial, "allow_with");
      detail("to allow", allow.empty() ? "no line of a policy does" : allow);
      detail("risk", text(denial, "risk"));
    }
  }

  void limits() {
    const Json& list = part(record_, "limits_met");
    const std::string ended = text(part(record_, "outcome"), "reason");
    if (!list.is_array()) return;
    bool first = true;
    for (const Json& met : list) {
      const std::string name = text(met, "limit");
      if (name == ended) continue;  // told already
      if (std::exchange(first, false)) title("Limits that were met");
      const LimitText* limit = find_limit(name);
      const std::uint64_t value = number(met, "value").value_or(0);
      text_ += fmt::format("  {} of {}\n", paint_.bold("limits." + name), amount(name, value));
      if (limit == nullptr) continue;
      detail("attempted", std::string(limit->attempted));
      detail("decided", text(met, "rule"));
      detail("known by", text(met, "evidence"));
      if (value > 0) detail("to allow", twice(*limit, value));
      detail("risk", std::string(limit->risk));
    }
  }

  void hazards() {
    const Json& list = part(record_, "hazards");
    if (!list.is_array() || list.empty()) return;
    title("Left in live grants");
    for (const Json& hazard : list)
      text_ += fmt::format("  {}: {}\n", paint_.bold(text(hazard, "path")), text(hazard, "why"));
    if (const auto more = number(record_, "hazards_left_out"))
      text_ += fmt::format("  and {} more\n", *more);
  }

  void streams() {
    for (const char* name : {"stdout", "stderr"}) {
      const Json& stream = part(record_, name);
      if (part(stream, "truncated") != true) continue;
      title(fmt::format("{} was cut", name));
      const auto cap = number(part(record_, "limits"), (std::string(name) + "_bytes").c_str());
      text_ += fmt::format("  {} written, {} kept\n",
                           describe(Bytes{number(stream, "bytes").value_or(0)}),
                           describe(Bytes{cap.value_or(0)}));
      if (cap) line("to allow", fmt::format("--output {}", to_text(Bytes{*cap * 2})));
    }
  }

  void degraded() {
    const Json& list = part(record_, "degraded");
    if (!list.is_array() || list.empty()) return;
    title("Enforced by weaker means");
    for (const Json& item : list) {
      const std::string instead = text(item, "instead");
      text_ += fmt::format("  {}: {}{}\n", text(item, "what"), text(item, "why"),
                           instead.empty() ? "" : "; instead: " + instead);
    }
  }

  const Json& record_;
  const Paint& paint_;
  std::string text_;
};

std::unexpected<Error> not_a_record(std::string message) {
  return fail(
      Error{.kind = ErrorKind::usage,
            .code = "not-a-record",
            .message = std::move(message),
            .hint = "records are written by sbx run --json, --report FILE or --report-fd N"});
}

Result<std::string> record_of(const Invocation& typed) {
  if (typed.operands.empty()) {
    const host::Host host = SBX_TRY(host::probe());
    return kept_record(host::state_folder(host));
  }
  const std::string& operand = typed.operands.front();
  if (operand == "-") return sys::read_all(STDIN_FILENO, kLargestRecord);
  return sys::read_file(operand, kLargestRecord);
}

}  // namespace

Result<std::string> why_words(std::string_view record, const Paint& paint) {
  const Json json = Json::parse(record, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return not_a_record("this is no JSON object");
  const std::string schema = text(json, "schema");
  if (schema != "sbx.run/1")
    return not_a_record(schema.empty()
                            ? "this JSON is no record of sbx"
                            : fmt::format("\"{}\" is not the schema of a record", schema));
  return Teller(json, paint).tell();
}

int why_command(const Invocation& typed) {
  constexpr int kUsage = 2;
  const auto complain = [&](const Error& error) {
    // A closed stderr can't be told anywhere.
    (void)sys::write_all(STDERR_FILENO,
                         error_text(error, paint_for(typed.output.color, STDERR_FILENO)));
    return error.kind == ErrorKind::usage ? kUsage : exit_status::kCouldNot;
  };
  if (typed.operands.size() > 1)
    return complain({.kind = ErrorKind::usage,
                     .code = "usage",
                     .message = "\"sbx why\" takes one record",
                     .hint = "a file, or - for standard input"});
  const auto record = record_of(typed);
  if (!record) return complain(record.error());
  const auto words = why_words(*record, paint_for(typed.output.color, STDOUT_FILENO));
  if (!words) return complain(words.error());
  return print_answer(*words) ? 0 : exit_status::kCouldNot;
}

}  // namespace sbx::cli
