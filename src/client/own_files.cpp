#include "client/own_files.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "plan/files/pattern.hpp"
#include "plan/files/protected.hpp"

namespace sbx::client {
namespace {

enum class Kept : std::uint8_t { counts, is_not_enough };

/// A directory of the host that the model can change.
struct Reach {
  std::string root;
  /// Whether a path below it stays as it is.
  std::function<bool(const std::string& below)> keeps;
};

/// As apply_changes does.
bool is_protected(const std::string& below) {
  std::string above;
  for (const std::string& name : plan::parts_of(below)) {
    const bool is_directory = above.size() + name.size() + 1 < below.size();
    if (!plan::reason_to_guard(above, name, is_directory).empty()) return true;
    above += (above.empty() ? "" : "/") + name;
  }
  return false;
}

/// `applied`: the source of what apply_changes writes to; empty: nothing.
std::vector<Reach> reaches_of(const plan::Plan& plan, const std::string& applied) {
  std::vector<Reach> reaches;
  for (const plan::LiveDirectory& live : plan.live)
    reaches.push_back({live.source, [&live](const std::string& below) {
                         return std::ranges::any_of(live.guarded, [&](const std::string& name) {
                           return below == name || below.starts_with(name + "/");
                         });
                       }});
  if (!applied.empty()) reaches.push_back({applied, is_protected});
  return reaches;
}

/// Below one of them; where `kept` counts, not among the names that stay there as they are.
bool can_be_changed(const std::vector<Reach>& reaches, const std::string& file, Kept kept) {
  return std::ranges::any_of(reaches, [&](const Reach& reach) {
    const std::string root = reach.root == "/" ? "" : reach.root;
    if (!file.starts_with(root + "/")) return false;
    return kept == Kept::is_not_enough || !reach.keeps(file.substr(root.size() + 1));
  });
}

Status check_own_file(const std::vector<Reach>& reaches, const host::Host& host,
                      const std::string& file, Kept kept) {
  const auto real = host.files->canonical(file);
  if (!can_be_changed(reaches, file, kept) && (!real || !can_be_changed(reaches, *real, kept)))
    return {};
  return fail(Error{.kind = ErrorKind::policy,
                    .code = "own-file-writable",
                    .message = "'" + printable(file) +
                               "' decides what a model may do or tells what it did, and lies where "
                               "its programs can change it",
                    .hint = "move the file out of that directory, or grant the directory without "
                            ":read-write and --allow-apply"});
}

/// It may not be there yet. It is never a link.
std::string place_of_log(const host::Host& host, const std::string& log) {
  const std::string path = log.starts_with('/') ? log : host.working_directory + "/" + log;
  const std::size_t name = path.rfind('/');
  const auto directory = host.files->canonical(name == 0 ? "/" : path.substr(0, name));
  return directory ? *directory + path.substr(name) : path;
}

}  // namespace

Status check_own_files(const plan::Plan& plan, const policy::Policy& policy, const host::Host& host,
                       const std::string& applied, const Operator& chosen) {
  const std::vector<Reach> reaches = reaches_of(plan, applied);
  for (const auto* list : {&policy.files, &policy.ways})
    for (const std::string& each : *list)
      SBX_TRY(check_own_file(reaches, host, each, Kept::is_not_enough));
  if (!chosen.log.empty())
    SBX_TRY(check_own_file(reaches, host, place_of_log(host, chosen.log), Kept::is_not_enough));
  std::vector<std::string> directories{host.working_directory, host.home};
  for (const Reach& reach : reaches) directories.push_back(reach.root);
  for (const std::string& directory : directories)
    for (const char* const name : chosen.registrations)
      if (const std::string file = directory + "/" + name; host.files->canonical(file))
        SBX_TRY(check_own_file(reaches, host, file, Kept::counts));
  return {};
}

}  // namespace sbx::client
