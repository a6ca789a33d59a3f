#include "plan/appeared.hpp"

#include <algorithm>
#include <string>

#include "plan/files/deny.hpp"
#include "plan/files/hazards.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/protected.hpp"

namespace sbx::plan {
namespace {

class Look {
 public:
  Look(const LiveDirectory& directory, const DenyRules& denials, Hazards& hazards,
       std::uint64_t most, Outcome& outcome)
      : directory_(directory),
        denials_(denials),
        hazards_(hazards),
        most_(most),
        outcome_(outcome) {}

  void run(const host::Files& files) {
    const host::Visit visit = [this](const host::Seen& seen) { return look(seen); };
    const host::Shut shut = [this](const std::string& directory) {
      hazards_.note_closed(directory.empty() ? directory_.source
                                             : joined(directory_.source, directory));
    };
    const Status walked = files.walk(directory_.source, visit, shut);
    if (!walked)
      tell(walked.error().text());
    else if (entries_ > most_)
      tell("it holds more than filesystem.scan = " + std::to_string(most_) + " entries now");
  }

 private:
  host::Walk look(const host::Seen& seen) {
    if (++entries_ > most_) return host::Walk::end;
    const std::string_view above = absolute(seen.directory);
    const bool hidden = denials_.hides(above, seen.name) != nullptr;
    const bool is_directory = seen.facts.type == host::FileType::directory;
    const bool guarded = !reason_to_guard(above, seen.name, is_directory).empty();
    if (!seen.is_mount) hazards_.look(joined(absolute(seen.directory), seen.name), seen.facts);
    if (!hidden && !guarded) return seen.is_mount ? host::Walk::past : host::Walk::into;
    std::string path = seen.directory.empty() ? std::string() : std::string(seen.directory) + "/";
    path += seen.name;
    if (!std::ranges::binary_search(directory_.guarded, path) &&
        outcome_.appeared.size() < kMostAppeared)
      outcome_.appeared.push_back({.path = joined(directory_.source, path), .is_hidden = !guarded});
    return host::Walk::past;
  }

  std::string_view absolute(std::string_view directory) {
    if (directory.empty()) return directory_.source;
    if (directory != last_directory_) {
      last_directory_ = directory;
      last_absolute_ = joined(directory_.source, directory);
    }
    return last_absolute_;
  }

  void tell(std::string why) {
    outcome_.degraded.push_back(
        {.promise = Promise::one_grant,
         .path = directory_.source,
         .why = std::move(why),
         .instead = "guarded names and hazards that appeared in it are not listed"});
  }

  const LiveDirectory& directory_;
  const DenyRules& denials_;
  Hazards& hazards_;
  std::uint64_t most_;
  Outcome& outcome_;
  std::uint64_t entries_ = 0;
  std::string last_directory_;
  std::string last_absolute_;
};

}  // namespace

void note_appeared(const Plan& plan, const host::Host& host, std::int64_t began, Outcome& outcome) {
  if (plan.live.empty()) return;
  std::vector<DenyRule> rules;
  for (const std::string& pattern : plan.hidden_names)
    rules.push_back({pattern, {.layer = Layer::builtin}});
  const DenyRules denials(std::move(rules), host.files.get());
  for (const LiveDirectory& directory : plan.live) {
    Hazards hazards(directory, *host.files, began, outcome);
    Look(directory, denials, hazards, plan.most_entries, outcome).run(*host.files);
  }
  std::ranges::stable_sort(outcome.appeared, {}, &Appeared::path);
  std::ranges::stable_sort(outcome.hazards, {}, &Hazard::path);
}

}  // namespace sbx::plan
