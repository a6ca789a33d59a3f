#include "host/state.hpp"

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

std::vector<std::string> state_folders(const Host& host) {
  std::vector<std::string> folders;
  if (host.home.empty()) return folders;
  folders.push_back(host.home + kDefault);
  if (std::string used = state_folder(host); used != folders.front())
    folders.push_back(std::move(used));
  return folders;
}

}  // namespace sbx::host
