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
  Look(const LiveFolder& folder, const DenyRules& denials, Hazards& hazards, std::uint64_t most,
       Outcome& outcome)
      : folder_(folder), denials_(denials), hazards_(hazards), most_(most), outcome_(outcome) {}

  void run(const host::Files& files) {
    const host::Visit visit = [this](const host::Seen& seen) { return look(seen); };
    const host::Shut shut = [this](const std::string& folder) {
      hazards_.note_closed(folder.empty() ? folder_.source : joined(folder_.source, folder));
    };
    const Status walked = files.walk(folder_.source, visit, shut);
    if (!walked)
      tell(walked.error().text());
    else if (entries_ > most_)
      tell("it holds more than filesystem.scan = " + std::to_string(most_) + " entries now");
  }

 private:
  host::Walk look(const host::Seen& seen) {
    if (++entries_ > most_) return host::Walk::end;
    const std::string_view above = absolute(seen.folder);
    const bool hidden = denials_.hides(above, seen.name) != nullptr;
    const bool is_folder = seen.facts.type == host::FileType::directory;
    const bool guarded = !reason_to_guard(above, seen.name, is_folder).empty();
    if (!seen.is_mount) hazards_.look(joined(absolute(seen.folder), seen.name), seen.facts);
    if (!hidden && !guarded) return seen.is_mount ? host::Walk::past : host::Walk::into;
    std::string path = seen.folder.empty() ? std::string() : std::string(seen.folder) + "/";
    path += seen.name;
    if (!std::ranges::binary_search(folder_.guarded, path) &&
        outcome_.appeared.size() < kMostAppeared)
      outcome_.appeared.push_back({.path = joined(folder_.source, path), .is_hidden = !guarded});
    return host::Walk::past;
  }

  std::string_view absolute(std::string_view folder) {
    if (folder.empty()) return folder_.source;
    if (folder != last_folder_) {
      last_folder_ = folder;
      last_absolute_ = joined(folder_.source, folder);
    }
    return last_absolute_;
  }

  void tell(std::string why) {
    outcome_.degraded.push_back(
        {.promise = Promise::one_grant,
         .path = folder_.source,
         .why = std::move(why),
         .instead = "guarded names and hazards that appeared in it are not listed"});
  }

  const LiveFolder& folder_;
  const DenyRules& denials_;
  Hazards& hazards_;
  std::uint64_t most_;
  Outcome& outcome_;
  std::uint64_t entries_ = 0;
  std::string last_folder_;
  std::string last_absolute_;
};

}  // namespace

void note_appeared(const Plan& plan, const host::Host& host, std::int64_t began, Outcome& outcome) {
  if (plan.live.empty()) return;
  std::vector<DenyRule> rules;
  for (const std::string& pattern : plan.hidden_names)
    rules.push_back({pattern, {.layer = Layer::builtin}});
  const DenyRules denials(std::move(rules), host.files.get());
  for (const LiveFolder& folder : plan.live) {
    Hazards hazards(folder, *host.files, began, outcome);
    Look(folder, denials, hazards, plan.most_entries, outcome).run(*host.files);
  }
  std::ranges::stable_sort(outcome.appeared, {}, &Appeared::path);
  std::ranges::stable_sort(outcome.hazards, {}, &Hazard::path);
}

}  // namespace sbx::plan
