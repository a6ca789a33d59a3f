#include "plan/environment.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "plan/files/inside.hpp"

namespace sbx::plan {
namespace {

constexpr std::array<std::string_view, 3> kPath = {"/usr/local/bin", "/usr/bin", "/bin"};

std::string path_of(const std::vector<std::string>& bin_directories) {
  std::string path;
  for (const std::string& directory : bin_directories)
    if (std::ranges::find(kPath, directory) == kPath.end()) path += directory + ":";
  for (const std::string_view directory : kPath) {
    path += directory;
    path += ':';
  }
  path.pop_back();
  return path;
}

}  // namespace

std::vector<std::string> decide_environment(const policy::Environment& policy,
                                            const host::Host& host, const RunRequest& request,
                                            const std::vector<std::string>& bin_directories) {
  std::map<std::string, std::string> variables = {{"HOME", home_of(policy)},
                                                  {"TMPDIR", "/tmp"},
                                                  {"PATH", path_of(bin_directories)},
                                                  {"USER", policy.user.value},
                                                  {"LOGNAME", policy.user.value},
                                                  {"SHELL", "/bin/sh"},
                                                  {"LANG", "C.UTF-8"}};
  const auto pass = [&](const std::string& name) {
    const auto found = host.environment.find(name);
    if (found != host.environment.end()) variables[name] = found->second;
  };
  if (request.interactive) pass("TERM");
  for (const auto& name : policy.pass) pass(name.value);
  for (const auto& [name, value] : policy.set) variables[name] = value.value;
  for (const auto& [name, value] : request.environment) variables[name] = value;

  std::vector<std::string> entries;
  entries.reserve(variables.size());
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace sbx::plan
