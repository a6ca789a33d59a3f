#include "policy/warnings.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "policy/entries.hpp"
#include "policy/syntax.hpp"

namespace sbx::policy {
namespace {

constexpr auto kSystem = std::to_array<std::string_view>(
    {"/bin", "/boot", "/etc", "/lib", "/lib64", "/run", "/sbin", "/usr", "/var"});

/// True if a grant of `directory` includes `place`.
bool covers(const std::string& directory, std::string_view place) {
  return !place.empty() && (directory == place || directory == "/" ||
                            (place.starts_with(directory) && place[directory.size()] == '/'));
}

/// What of value a live grant covers; empty when nothing is known of it.
std::string covered_by(const Policy& policy, const std::string& home,
                       const std::string& directory) {
  for (const std::string_view place : kSystem)
    if (covers(directory, place)) return "the system directory " + std::string(place);
  if (covers(directory, home)) return "the home directory";
  for (const std::string& file : policy.files)
    if (covers(directory, parent_path(file))) return "the directory of the policy " + quoted(file);
  for (const std::string& way : policy.ways)
    if (covers(directory, parent_path(way)))
      return "the directory of " + quoted(way) + ", which leads to the policy";
  return {};
}

std::string at(const Origin& origin) {
  return " (" + origin.text() + ")";
}

}  // namespace

std::vector<Warning> warnings(const Policy& policy, const std::string& home) {
  std::vector<Warning> list;
  for (const auto& grant : policy.filesystem.write) {
    const std::string what = covered_by(policy, home, grant.value.source);
    if (what.empty()) continue;
    list.push_back({"filesystem.write = " + quoted(grant.value.source) + " covers " + what +
                    ": the program changes it on the host" + at(grant.origin)});
  }
  const auto& workspace = policy.filesystem.workspace;
  if (workspace.mode.value == WorkspaceMode::read_write &&
      workspace.source.value.starts_with('/')) {
    const std::string what = covered_by(policy, home, workspace.source.value);
    if (!what.empty())
      list.push_back({"the live workspace covers " + what + ": the program changes it on the host" +
                      at(workspace.source.origin)});
  }
  const auto& network = policy.network;
  if (!network.allow.empty() && network.mode.value != NetworkMode::allow_list)
    list.push_back({"network.allow has no effect: network.mode is not \"allow-list\"" +
                    at(network.allow.front().origin)});
  // The first place of an entry counts, so a list that has them all has them from there.
  const auto is_builtin = [](const auto& entry) { return entry.origin.layer == Layer::builtin; };
  if (std::ranges::none_of(policy.filesystem.deny, is_builtin))
    list.push_back(
        {"filesystem.deny lacks the built-in list: credentials within a grant are not "
         "hidden",
         Weight::told_when_asked});
  return list;
}

}  // namespace sbx::policy
