#include "plan/files/way_here.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/links.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

/// Nothing else is there, below it, or in the place of a directory above it.
bool is_free(const std::string& place, const std::vector<Mount>& steps) {
  return std::ranges::none_of(steps, [&](const Mount& step) {
    const bool is_leaf = step.kind() == MountKind::symlink || step.kind() == MountKind::file ||
                         step.kind() == MountKind::proc || step.kind() == MountKind::outer_proc ||
                         (step.host_source() != nullptr && !step.host_source()->is_directory);
    return is_within(step.target, place) || (is_leaf && is_within(place, step.target));
  });
}

}  // namespace

void add_way_here(const host::Host& host, const View& view, const DenyRules& denials,
                  const std::vector<Mount>& view_steps, std::vector<Mount>& steps) {
  const auto named = host.environment.find("PWD");
  const std::string& here = host.working_directory;
  if (named == host.environment.end() || !named->second.starts_with('/') || named->second == here ||
      view.inside(here) != here || host.files->canonical(named->second).value_or("") != here)
    return;
  const auto text = [&](const std::string& path) -> std::optional<std::string> {
    auto target = host.files->link_target(path);
    return target ? std::optional(std::move(*target)) : std::nullopt;
  };
  for (const std::string& link : links_on_the_way(named->second, text)) {
    auto target = host.files->canonical(link);
    if (!target || view.over(link) != nullptr || denials.covers(link) != nullptr ||
        !is_free(link, view_steps) || !is_free(link, steps))
      continue;
    steps.push_back(symlink_step(std::move(*target), link));
  }
}

}  // namespace sbx::plan
