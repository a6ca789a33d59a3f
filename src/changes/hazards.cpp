#include "changes/hazards.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "changes/diff.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/pattern.hpp"
#include "workspace/names.hpp"
#include "workspace/tree.hpp"

namespace sbx::changes {
namespace {

struct Programs {
  std::string_view directory;
  std::string_view why;
};
/// Tools of the host run what lies there because the directory has this name.
constexpr auto kPrograms = std::to_array<Programs>({
    {".venv/bin", "uv, poetry and editors run what is in it"},
    {"node_modules/.bin", "npm run and npx run what is in it"},
    {"vendor/bin", "composer runs what is in it"},
});

/// The directory of programs that a change lies in, and why that matters.
std::pair<std::string, std::string_view> programs_above(const std::string& path) {
  std::string directory = workspace::directory_of(path);
  for (const Programs& each : kPrograms)
    if (directory == each.directory || directory.ends_with("/" + std::string(each.directory)))
      return {std::move(directory), each.why};
  return {};
}

}  // namespace

std::string danger_of_link(const workspace::Copy& copy, const Change& link, std::string_view to) {
  constexpr const char* kLeadsOut = "a symbolic link that may lead out of the directory";
  std::vector<std::string> place;
  if (!to.starts_with('/'))
    place = plan::parts_of(workspace::directory_of(link.path));
  else if (plan::is_within(to, copy.directory))
    to = plan::below(to, copy.directory);
  else
    return kLeadsOut;
  // A ".." that follows a name leads out of wherever that leads, if it is a link itself.
  bool is_below = false;
  for (const std::string& part : plan::parts_of(to)) {
    if (part != "..") {
      is_below = true;
      place.push_back(part);
    } else if (is_below || place.empty()) {
      return kLeadsOut;
    } else {
      place.pop_back();
    }
  }
  std::string path;
  for (const std::string& part : place) path += (path.empty() ? "" : "/") + part;
  const auto guard = workspace::reason_to_protect(copy.directory, path, FileType::file);
  return guard.empty() ? "" : "a symbolic link to a protected name (" + std::string(guard) + ")";
}

std::vector<workspace::Left> hazards_of(const workspace::Copy& copy,
                                        const std::vector<Change>& changes) {
  std::vector<workspace::Left> found;
  std::map<std::string, std::string_view> programs;
  for (const Change& each : changes) {
    if (each.change == ChangeKind::deleted || each.type == FileType::directory) continue;
    if (auto above = programs_above(each.path); !above.first.empty()) {
      programs.insert(std::move(above));
      continue;
    }
    const std::string to = link_text(copy, each);
    if (to.empty()) continue;
    if (std::string why = danger_of_link(copy, each, to); !why.empty())
      found.push_back({.path = each.path, .why = std::move(why) + ": " + to});
  }
  for (const auto& [directory, why] : programs)
    found.push_back({.path = directory, .why = std::string(why)});
  return found;
}

}  // namespace sbx::changes
