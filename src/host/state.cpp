#include "host/state.hpp"

namespace sbx::host {

bool lies_below(const std::string& path, const std::string& folder) {
  if (!path.starts_with(folder + "/")) return false;
  return path.find("/../") == std::string::npos && !path.ends_with("/..");
}

std::string state_folder(const Host& host) {
  if (host.home.empty()) return {};
  const auto set = host.environment.find("XDG_STATE_HOME");
  if (set != host.environment.end() && lies_below(set->second, host.home))
    return set->second + "/sbx";
  return host.home + "/.local/state/sbx";
}

}  // namespace sbx::host
