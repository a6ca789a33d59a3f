#include <sbx/record.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/fields.hpp"
#include "lib/members.hpp"

namespace sbx {

using namespace lib;

namespace {

template <class Entry, class Read>
std::vector<Entry> list(const Json& object, const char* key, Read read) {
  std::vector<Entry> entries;
  for (const Json& each : part(object, key))
    if (each.is_object()) entries.push_back(read(each));
  return entries;
}

/// The enumerator for its name_of(); the first one for an unknown word.
template <class Enum>
Enum word(const Json& object, const char* key) {
  const std::string text = plain(object, key);
  for (unsigned char i = 0; *name_of(static_cast<Enum>(i)) != '\0'; ++i)
    if (text == name_of(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return Enum{};
}
std::optional<Verdict> verdict_of(const Json& outcome) {
  const std::string status = plain(outcome, "status");
  if (status == "exited") return Exited{small(outcome, "exit_code")};
  if (status == "signaled") return Signaled{small(outcome, "signal")};
  if (status == "over-budget") return OverBudget{word<Budget>(outcome, "reason")};
  if (status == "denied") return Denied{};  // the denials name the call
  if (status == "cancelled") return Cancelled{small(outcome, "signal")};
  if (status == "lost") return Lost{};
  return std::nullopt;
}

void read_findings(const Json& json, Outcome& outcome) {
  outcome.limits_met = read_list<LimitMet>(part(json, "limits_met"));
  outcome.denials = read_list<Denial>(part(json, "denials"));
  outcome.hints = read_list<Hint>(part(json, "hints"));
  const Json& network = part(json, "network");
  outcome.network_used = read_list<NetworkUse>(part(network, "used"));
  outcome.network_failures = read_list<NetworkFailure>(part(network, "failed"));
  outcome.degraded = read_list<Degraded>(part(json, "degraded"));
}

void read_files(const Json& json, Outcome& outcome) {
  outcome.changes = read_list<Change>(part(json, "changes"));
  outcome.changes_left_out = count(json, "changes_left_out");
  outcome.appeared = list<Appeared>(json, "appeared", [](const Json& each) {
    return Appeared{name(each, "path"), plain(each, "guard") == "filesystem.deny"};
  });
  outcome.hazards = read_list<Hazard>(part(json, "hazards"));
  outcome.hazards_left_out = count(json, "hazards_left_out");
  outcome.left_running = read_members<LeftRunning>(part(json, "left_running"));
}

Outcome outcome_of(const Json& json, Verdict verdict) {
  Outcome outcome{.verdict = std::move(verdict),
                  .detail = plain(part(json, "outcome"), "detail"),
                  .out = stream_of(part(json, "stdout")),
                  .err = stream_of(part(json, "stderr"))};
  if (const Json& error = part(json, "write_error"); error.is_object())
    outcome.write_error = WriteError{plain(error, "stream"), small(error, "errno")};
  read_findings(json, outcome);
  read_files(json, outcome);
  outcome.usage = read_members<Usage>(part(json, "usage"));
  outcome.cpu_time_means = plain(part(json, "enforced"), "cpu_time");
  return outcome;
}

}  // namespace

std::optional<Record> read_record(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || plain(json, "schema") != "sbx.run/1") return std::nullopt;
  const Json& outcome = part(json, "outcome");
  Record record{.id = plain(json, "id"),
                .status = plain(outcome, "status"),
                .success = flag(outcome, "success")};
  if (auto verdict = verdict_of(outcome))
    record.outcome = outcome_of(json, std::move(*verdict));
  else
    record.error = Error{.kind = ErrorKind::setup,
                         .code = plain(outcome, "code"),
                         .message = plain(outcome, "detail"),
                         .hint = plain(outcome, "hint")};
  return record;
}

}  // namespace sbx
