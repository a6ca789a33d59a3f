#include "record/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <utility>

#include <sbx/outcome.hpp>
#include <sbx/units.hpp>

#include "base/json_read.hpp"
#include "base/text.hpp"
#include "lib/members.hpp"
#include "plan/filter/table.hpp"
#include "record/codes.hpp"
#include "record/limit_texts.hpp"
#include "record/parts.hpp"
#include "record/words.hpp"

namespace sbx::record {
namespace {

// A record is untrusted input: members that are missing or of another type are skipped.

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

/// Writes the parts of one explanation.
class Teller {
 public:
  Teller(const Json& record, const Paint& paint) : record_(record), paint_(paint) {}

  std::string tell() {
    head();
    outcome();
    denials();
    hints();
    network();
    limits();
    hazards();
    left_running();
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
    if (is_cell()) command = cell_words();
    const Json& policy = part(record_, "policy");
    const std::string name = text(policy, "name");
    text_ +=
        fmt::format("{}{}{}\n", text(record_, "id"), command,
                    name.empty() ? (is_cell() ? "" : ", without a valid policy")
                                 : fmt::format(", under {} ({})", name, text(policy, "source")));
  }

  /// One that did not begin has no context if none was named, and no session if none of that name
  /// could be.
  [[nodiscard]] std::string cell_words() const {
    const Json& session = part(record_, "session");
    std::string of = text(session, "context");
    if (of.empty()) of = text(session, "language");
    const std::string in = text(session, "name");
    return " a cell" + (of.empty() ? "" : " of " + of) +
           (in.empty() ? "" : ", in the session " + in);
  }

  // --- how it ended

  void outcome() {
    const Json& outcome = part(record_, "outcome");
    const std::string status = text(outcome, "status");
    title("How it ended");
    const std::string sentence = text(outcome, "detail");
    if (status == "exited") return exited(outcome);
    if (status == "answered")
      answered(outcome);
    else
      ended(outcome, status, sentence);
    if (text(record_, "state") == "lost") lost_state();
  }

  void ended(const Json& outcome, const std::string& status, const std::string& sentence) {
    if (status == "signaled") return signaled(outcome, sentence);
    text_ += fmt::format("  {}: {}\n", status, sentence.empty() ? "no more is known" : sentence);
    if (status == "over-budget") return over_budget(outcome);
    if (status == "setup-failed") return setup_failed(outcome);
    if (status == "denied") line("rule", "syscalls.denied = \"kill\": a refused call ends the run");
    if (status == "cancelled")
      line("effect", "sbx was told to stop; whatever the program returned, this is the outcome");
    if (status == "interrupted") line("effect", "somebody asked for that: sbx session interrupt");
    if (status == "lost") lost(outcome);
  }

  /// Explains a cell. What it says comes from inside.
  void answered(const Json& outcome) {
    const Json& error = part(part(record_, "answer"), "error");
    if (const auto status = number(part(record_, "answer"), "exit"); status && *status != 0)
      text_ += fmt::format("  answered: the code ended with status {}\n", *status);
    else if (part(outcome, "success") == true)
      text_ += "  answered: the code came to its end\n";
    else
      text_ += "  answered: the code raised an exception\n";
    if (!error.is_object()) return;
    line("error", fmt::format("{}: {}", text(error, "name"), text(error, "value")));
    if (const auto at = number(error, "line")) line("line", std::to_string(*at));
  }

  void lost_state() {
    line("effect", "the context's variables are lost");
    line("cause", text(record_, "lost_because"));
  }

  void lost(const Json& outcome) {
    line("effect", "the command had begun: what it did until then is done, also to granted files");
    const CodeText* known = find_code(text(outcome, "code"));
    if (known != nullptr)
      line("code", fmt::format("{}: {}", text(outcome, "code"), known->meaning));
    line("to see", "whether the kernel was out of memory, in its log (dmesg)");
  }

  /// Something reported in its own section may have made the command fail.
  [[nodiscard]] bool has_known_cause() const {
    const auto holds = [](const Json& list) { return list.is_array() && !list.empty(); };
    return holds(part(record_, "denials")) || holds(part(record_, "limits_met")) ||
           holds(part(part(record_, "network"), "failed"));
  }

  void exited(const Json& outcome) {
    const std::uint64_t code = number(outcome, "exit_code").value_or(0);
    text_ += fmt::format("  exited with status {}\n", code);
    if (code == 0) return;
    if (has_known_cause()) {
      text_ += "  what is listed below may be the reason\n";
      return;
    }
    const bool has_own_root = text(part(record_, "isolation"), "tier") != "landlock";
    text_ += fmt::format(
        "  sbx refused nothing: the reason is the program's own, or a file outside the policy, "
        "which {}\n",
        has_own_root ? "looks absent" : "it may not read");
    line("to see", has_own_root
                       ? "its own messages; sbx run --explain names the files that it looked for "
                         "in vain"
                       : "its own messages; sbx run --read FILE shows a file");
  }

  void signaled(const Json& outcome, const std::string& sentence) {
    const auto signal = static_cast<int>(number(outcome, "signal").value_or(0));
    text_ += fmt::format("  {}\n",
                         sentence.empty() ? fmt::format("killed by signal {}", signal) : sentence);
    if (signal == SIGSYS)
      line("rule", "a call of a foreign architecture: the filter ends the process");
  }

  [[nodiscard]] bool was_met(std::string_view limit) const {
    const Json& list = part(record_, "limits_met");
    return list.is_array() &&
           std::ranges::any_of(list, [&](const Json& met) { return text(met, "limit") == limit; });
  }

  /// In a live grant sbx can only count what it may read of each process.
  void not_counted(const Json& outcome) {
    line("action", "it wrote, or could, what sbx can't count");
    line("rule", text(outcome, "rule"));
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
    line("action", std::string(limit->action));
    line("rule", text(outcome, "rule"));
    line("to allow", budget_cure(outcome, *limit, value));
    line("risk", std::string(limit->risk));
  }

  [[nodiscard]] std::string budget_cure(const Json& outcome, const LimitText& limit,
                                        const std::optional<std::uint64_t>& value) const {
    constexpr const char* kOfStart = "; a session's limits are set when it starts";
    if (text(outcome, "detail").contains("session.cpu_time"))  // not limits.cpu_time of the call
      return std::string("a larger session.cpu_time") + kOfStart;
    if (value) return limit_cure(limit, *value, text(outcome, "rule"));
    // A cell's record has no limits: they are the session's.
    if (std::string hint = text(outcome, "hint"); !hint.empty()) return hint + kOfStart;
    return is_cell() ? fmt::format("a larger {}{}", limit.option, kOfStart) : "";
  }

  [[nodiscard]] bool is_cell() const { return text(record_, "schema") == "sbx.cell/1"; }

  /// Each output stream has a key of its own; only the option covers both.
  static std::string limit_cure(const LimitText& limit, std::uint64_t value,
                                const std::string& rule) {
    return limit.name == "output" ? twice(limit, value)
                                  : cure_of(limit, value, option_in_rule(rule));
  }

  [[nodiscard]] std::optional<std::uint64_t> output_cap() const {
    for (const char* name : {"stdout", "stderr"})
      if (part(part(record_, name), "truncated") == true) return output_cap(name);
    return std::nullopt;
  }

  /// How much of a stream is captured, or passed through.
  [[nodiscard]] std::optional<std::uint64_t> output_cap(const char* name) const {
    const bool passed = part(part(record_, name), "text").is_null();
    return number(part(record_, "limits"),
                  passed ? "passed_bytes" : (std::string(name) + "_bytes").c_str());
  }

  void setup_failed(const Json& outcome) {
    const std::string code = text(outcome, "code");
    line("effect", "nothing ran");
    const CodeText* known = find_code(code);
    line("code",
         code.empty() || known == nullptr ? code : fmt::format("{}: {}", code, known->meaning));
    const std::string hint = text(outcome, "hint");
    if (!hint.empty())
      line("fix", hint);
    else if (known != nullptr)
      line("fix", std::string(known->cure));
    if (text(outcome, "reason") == "host") line("see", "sbx doctor");
  }

  // --- what was refused

  /// What a denied call would do, from the table of calls; its name precedes "(".
  static std::string purpose(const std::string& what) {
    const plan::Call* call = plan::find_call(std::string_view(what).substr(0, what.find('(')));
    return call == nullptr ? ""
                           : fmt::format("{} ({})", call->reason, plan::text_of(call->group).name);
  }

  static std::string attempt(DenialKind kind, const std::string& what) {
    switch (kind) {
      case DenialKind::syscall:
        return purpose(what);
      case DenialKind::network:
        return "to reach " + what;
      case DenialKind::path:
        return "to find " + what;
      case DenialKind::name:
        return "to make " + what;
    }
    return {};
  }

  /// A record of another version may know more kinds.
  static std::string attempt_of(const Json& json, const Denial& denial) {
    const std::string kind = text(json, "kind");
    return denial_kind(kind) ? attempt(denial.kind, printable(denial.what)) : kind;
  }

  /// The options as typed; absent in a record of another version.
  static std::string to_allow(const Denial& denial) {
    std::string cure = cure_of_denial(denial);
    return cure.empty() ? "no option or line of a policy does" : cure;
  }

  void denials() {
    const Json& list = part(record_, "denials");
    if (!list.is_array() || list.empty()) return;
    title("What was refused");
    for (const Json& json : list) {
      const auto denial = lib::read_members<Denial>(json);
      const std::string process = printable(denial.process);
      text_ += fmt::format("  {}{}{}\n", paint_.bold(printable(denial.what)),
                           process.empty() ? "" : " by " + process,
                           denial.count > 1 ? fmt::format(", {} times", denial.count) : "");
      detail("action", attempt_of(json, denial));
      detail("rule", printable(denial.rule));
      detail("to allow", to_allow(denial));
      detail("risk", printable(denial.risk));
    }
  }

  /// A program chooses its last words, so most of it is a guess.
  void hints() {
    const std::vector<Hint> hints = hints_of(record_);
    if (hints.empty()) return;
    title("What it may have lacked");
    for (const Hint& hint : hints) {
      text_ += fmt::format("  {}{}\n", hint.perhaps ? "perhaps " : "", printable(hint.text));
      std::string options;
      for (const std::string& word : hint.options)
        options += (options.empty() ? "" : " ") + (word == "DIR" ? word : shell_word(word));
      detail(hint.kind == HintKind::lost_file ? "to keep it" : "to allow", printable(options));
    }
  }

  /// Destinations that the policy allows and that could not be reached.
  void network() {
    const std::vector<NetworkFailure> failures = failures_of(record_);
    if (failures.empty()) return;
    title("What the network did not reach");
    for (const NetworkFailure& failure : failures) {
      text_ += fmt::format("  {}{}\n", paint_.bold(printable(failure.what)),
                           failure.count > 1 ? fmt::format(", {} times", failure.count) : "");
      detail("reason", printable(failure.why));
      detail("effect", "the program saw a connection that was accepted and then reset");
    }
  }

  void limits() {
    const Json& list = part(record_, "limits_met");
    const std::string ended = text(part(record_, "outcome"), "reason");
    if (!list.is_array()) return;
    bool first = true;
    for (const Json& met : list) {
      const std::string name = text(met, "limit");
      if (name == ended) continue;  // already reported
      if (std::exchange(first, false)) title("Limits that were reached");
      const LimitText* limit = find_limit(name);
      const std::uint64_t value = number(met, "value").value_or(0);
      text_ += fmt::format("  {} = {}\n", paint_.bold("limits." + name), toml_value(name, value));
      if (limit == nullptr) continue;
      detail("action", std::string(limit->action));
      detail("rule", text(met, "rule"));
      detail("known by", text(met, "evidence"));
      if (value > 0) detail("to allow", cure_of(*limit, value, option_in_rule(text(met, "rule"))));
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

  void left_running() {
    const Json& left = part(record_, "left_running");
    const std::uint64_t count = number(left, "count").value_or(0);
    if (count == 0) return;
    title("Left running");
    const std::string process = text(left, "process");
    text_ += fmt::format("  {} {} still ran when the command had ended{}\n", count,
                         count == 1 ? "process" : "processes",
                         process.empty() ? "" : ": " + process + (count > 1 ? " and others" : ""));
    detail("effect", "it was ended: what a command leaves running ends with it");
    detail("to keep it", "a call of its own in a session: sbx session exec NAME -d -- COMMAND");
  }

  void streams() {
    for (const char* name : {"stdout", "stderr"}) {
      const Json& stream = part(record_, name);
      if (part(stream, "truncated") != true) continue;
      title(fmt::format("{} was cut", name));
      const auto cap = output_cap(name);
      const std::uint64_t kept =
          number(stream, "head_bytes").value_or(0) + number(stream, "tail_bytes").value_or(0);
      text_ +=
          fmt::format("  {} written, {} kept\n",
                      describe(Bytes{number(stream, "bytes").value_or(0)}), describe(Bytes{kept}));
      if (cap && kept >= *cap)
        line("to allow", fmt::format("--output {}", to_text(Bytes{*cap * 2})));
    }
    const Json& lost = part(record_, "write_error");
    if (!lost.is_object()) return;
    title(fmt::format("{} could not be written", text(lost, "stream")));
    text_ += fmt::format("  {}: the exit status of sbx is 125\n", text(lost, "error"));
  }

  void degraded() {
    const Json& list = part(record_, "degraded");
    if (!list.is_array() || list.empty()) return;
    title("Weaker enforcement");
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
            .hint = "records are written by --json of sbx run, session exec and session eval, by "
                    "--report FILE and by --report-fd N"});
}

/// What became of a notebook, and why its first failed cell failed.
std::string notebook_words(const Json& json, const Paint& paint) {
  const Json& outcome = part(json, "outcome");
  std::string told = text(outcome, "detail");
  std::string words = fmt::format("the notebook {}: {}{}\n", text(json, "notebook"),
                                  text(outcome, "status"), told.empty() ? "" : ": " + told);
  if (const std::string hint = text(outcome, "hint"); !hint.empty())
    words += fmt::format("  {:<11}{}\n", "fix", hint);
  const auto failed = number(outcome, "cell");
  const Json& cells = part(json, "cells");
  if (!failed || !cells.is_array()) return words;
  for (const Json& cell : cells)
    if (number(cell, "cell") == failed)
      words += fmt::format("\ncell {}: ", *failed) + Teller(part(cell, "record"), paint).tell();
  return words;
}

}  // namespace

Result<std::string> why_words(std::string_view record, const Paint& paint) {
  Json json = read_json(record);
  if (json.is_discarded() || !json.is_object()) return not_a_record("this is no JSON object");
  // The last line of session eval --stream.
  if (text(json, "event") == "end" && part(json, "record").is_object())
    json = Json(part(json, "record"));
  const std::string schema = text(json, "schema");
  if (schema != "sbx.run/1" && schema != "sbx.cell/1" && schema != "sbx.notebook/1")
    return not_a_record(schema.empty()
                            ? "this JSON is not a record of sbx"
                            : fmt::format("\"{}\" is not the schema of a record", schema));
  if (text(part(json, "outcome"), "status").empty())
    return not_a_record(fmt::format("this record of \"{}\" has no outcome", schema));
  if (schema == "sbx.notebook/1") return notebook_words(json, paint);
  return Teller(json, paint).tell();
}

}  // namespace sbx::record
