#include <time.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "policy/write.hpp"
#include "record/record.hpp"
#include "session/session.hpp"
#include "workspace/copy.hpp"

namespace sbx::session {
namespace {

/// So many microseconds from now. To the nearest second: cut off, the same moment would be another
/// second each time.
std::int64_t seconds_since_epoch(std::chrono::microseconds ahead) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  constexpr std::int64_t kHalf = 500'000;
  return now.tv_sec + (now.tv_nsec / 1000 + ahead.count() + kHalf) / 1'000'000;
}

/// The policy's files, and what led to them.
std::vector<std::string> policy_files(const policy::Policy& policy) {
  std::vector<std::string> files = policy.files;
  files.insert(files.end(), policy.ways.begin(), policy.ways.end());
  return files;
}

}  // namespace

protocol::SessionFacts Session::info() const {
  const policy::Policy& policy = held_->policy();
  const std::string mode =
      policy::value_toml(*policy::find_key("filesystem.workspace.mode"), policy);
  // Not what the policy wants where the caller's directory can't be used: plan.notes says so.
  const bool is_empty =
      workspace::has_copy(held_->plan()) && !workspace::has_overlay(held_->plan());
  const std::string& source = policy.filesystem.workspace.source.value;
  const policy::Outputs& outputs = policy.filesystem.outputs;
  protocol::SessionFacts facts{
      .name = directory_.name(),
      .id = id_,
      .pid = ::getpid(),
      .sbx = SBX_VERSION,
      .policy = {.name = policy.name.value, .source = policy.source, .sha256 = policy_sha256_},
      .started = started_,
      .calls_running = calls_.running(),
      .contexts = contexts_.living(),
      .directory = held_->plan().working_directory,
      .started_in = held_->host().working_directory,
      .workspace = is_empty ? "empty" : mode.substr(1, mode.size() - 2),  // without quotes
      .follows_caller = mode == "\"empty\"" || !source.starts_with('/'),
      .limits = read_fields<protocol::LimitFacts>(record::limits_json(held_->plan()))
                    .value_or(protocol::LimitFacts{}),
      .expires = seconds_since_epoch(clocks_.left()),
      .idle_ms = policy.session.idle.value.count(),
      .outputs = {.max_bytes = outputs.max_bytes.value.count,
                  .max_files = outputs.max_files.value,
                  .max_depth = outputs.max_depth.value},
      .policy_files = policy_files(policy),
      .notes = held_->plan().notes,
      .degraded = held_->plan().degraded};
  for (const auto& each : policy.network.publish) facts.published.push_back(each.value);
  return facts;
}

}  // namespace sbx::session
