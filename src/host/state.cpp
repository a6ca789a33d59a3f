#include "host/state.hpp"

#include <algorithm>
#include <utility>

namespace sbx::host {
namespace {

constexpr const char* kDefault = "/.local/state/sbx";

}  // namespace

bool lies_below(const std::string& path, const std::string& directory) {
  if (!path.starts_with(directory + "/")) return false;
  return path.find("/../") == std::string::npos && !path.ends_with("/..");
}

std::string why_home_is_ignored(const Host& host) {
  const auto set = host.environment.find("HOME");
  if (set == host.environment.end() || set->second.empty()) return {};
  std::string named = set->second;
  while (named.size() > 1 && named.ends_with('/')) named.pop_back();
  if (named == host.home) return {};
  if (!named.starts_with('/')) return "it is not an absolute path";
  const auto facts = host.files->look(named);
  if (!facts) return "it can't be found";
  return facts->type == FileType::directory || facts->type == FileType::symlink
             ? std::string()
             : "it is not a directory";
}

std::string state_directory(const Host& host) {
  if (host.home.empty()) return {};
  const auto set = host.environment.find("XDG_STATE_HOME");
  if (set != host.environment.end() && lies_below(set->second, host.home))
    return set->second + "/sbx";
  return host.home + kDefault;
}

namespace {

bool is_private(const Host& host, const std::string& directory) {
  const auto facts = host.files->look(directory);
  return facts && facts->type == FileType::directory && facts->uid == host.uid &&
         (facts->mode & 077U) == 0;
}

/// systemd's directory for a user, whether this caller's environment names it or not.
std::string usual_runtime_directory(const Host& host) {
  return "/run/user/" + std::to_string(host.uid);
}

void add(std::vector<std::string>& directories, std::string directory) {
  if (!directory.empty() && std::ranges::find(directories, directory) == directories.end())
    directories.push_back(std::move(directory));
}

/// Runtime directories that this caller's environment need not name: its state directories do.
void add_used_runtime_directories(const Host& host, std::vector<std::string>& directories) {
  if (host.home.empty()) return;
  for (const std::string& state : {state_directory(host), host.home + kDefault}) {
    const auto used = host.files->link_target(state + "/" + kRuntimeLink);
    if (used && used->starts_with('/')) add(directories, *used);
  }
}

}  // namespace

std::vector<std::string> state_directories(const Host& host) {
  std::vector<std::string> directories;
  if (!host.home.empty()) add(directories, host.home + kDefault);
  add(directories, state_directory(host));
  add(directories, runtime_directory(host));
  if (is_private(host, usual_runtime_directory(host)))
    add(directories, usual_runtime_directory(host) + "/sbx");
  add_used_runtime_directories(host, directories);
  return directories;
}

std::vector<std::string> session_directories(const Host& host) {
  std::vector<std::string> directories;
  add(directories, runtime_directory(host));
  add(directories, state_directory(host));
  if (!host.home.empty()) add(directories, host.home + kDefault);
  add_used_runtime_directories(host, directories);
  return directories;
}

std::string runtime_directory(const Host& host) {
  const auto set = host.environment.find("XDG_RUNTIME_DIR");
  if (set != host.environment.end() && set->second.starts_with('/') &&
      is_private(host, set->second))
    return set->second + "/sbx";
  return state_directory(host);
}

}  // namespace sbx::host
