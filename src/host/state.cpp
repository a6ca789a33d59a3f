#include "host/state.hpp"

#include <algorithm>
#include <utility>

namespace sbx::host {
namespace {

constexpr const char* kDefault = "/.local/state/sbx";

}  // namespace

bool lies_below(const std::string& path, const std::string& folder) {
  if (!path.starts_with(folder + "/")) return false;
  return path.find("/../") == std::string::npos && !path.ends_with("/..");
}

std::string state_folder(const Host& host) {
  if (host.home.empty()) return {};
  const auto set = host.environment.find("XDG_STATE_HOME");
  if (set != host.environment.end() && lies_below(set->second, host.home))
    return set->second + "/sbx";
  return host.home + kDefault;
}

namespace {

bool is_private(const Host& host, const std::string& folder) {
  const auto facts = host.files->look(folder);
  return facts && facts->type == FileType::directory && facts->uid == host.uid &&
         (facts->mode & 077U) == 0;
}

/// systemd's directory for a user, whether this caller's environment names it or not.
std::string usual_runtime_folder(const Host& host) {
  return "/run/user/" + std::to_string(host.uid);
}

void add(std::vector<std::string>& folders, std::string folder) {
  if (!folder.empty() && std::ranges::find(folders, folder) == folders.end())
    folders.push_back(std::move(folder));
}

/// Runtime directories that this caller's environment need not name: its state directories do.
void add_used_runtime_folders(const Host& host, std::vector<std::string>& folders) {
  if (host.home.empty()) return;
  for (const std::string& state : {state_folder(host), host.home + kDefault}) {
    const auto used = host.files->link_target(state + "/" + kRuntimeLink);
    if (used && used->starts_with('/')) add(folders, *used);
  }
}

}  // namespace

std::vector<std::string> state_folders(const Host& host) {
  std::vector<std::string> folders;
  if (!host.home.empty()) add(folders, host.home + kDefault);
  add(folders, state_folder(host));
  add(folders, runtime_folder(host));
  if (is_private(host, usual_runtime_folder(host)))
    add(folders, usual_runtime_folder(host) + "/sbx");
  add_used_runtime_folders(host, folders);
  return folders;
}

std::vector<std::string> session_folders(const Host& host) {
  std::vector<std::string> folders;
  add(folders, runtime_folder(host));
  add(folders, state_folder(host));
  if (!host.home.empty()) add(folders, host.home + kDefault);
  add_used_runtime_folders(host, folders);
  return folders;
}

std::string runtime_folder(const Host& host) {
  const auto set = host.environment.find("XDG_RUNTIME_DIR");
  if (set != host.environment.end() && set->second.starts_with('/') &&
      is_private(host, set->second))
    return set->second + "/sbx";
  return state_folder(host);
}

}  // namespace sbx::host
