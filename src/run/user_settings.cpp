#include "run/user_settings.hpp"

#include "base/sys.hpp"
#include "host/state.hpp"
#include "policy/config.hpp"
#include "policy/locate.hpp"

namespace sbx::run {
namespace {

constexpr std::size_t kLargestConfig = 64U << 10;

std::string config_directory(const host::Host& host) {
  if (host.home.empty()) return {};
  const auto set = host.environment.find("XDG_CONFIG_HOME");
  if (set != host.environment.end() && host::lies_below(set->second, host.home))
    return set->second + "/sbx";
  return host.home + "/.config/sbx";
}

Result<policy::Config> config_in(const std::string& directory) {
  const std::string path = directory + "/config.toml";
  const auto text = sys::read_file(path, kLargestConfig);
  if (!text) {
    if (text.error().errno_value == ENOENT || text.error().errno_value == ENOTDIR)
      return policy::Config{};
    return std::unexpected(text.error());
  }
  return policy::parse_config(*text, path);
}

/// For shells and CI jobs: overrides the user's file, is overridden by -p.
void take_variable(const host::Host& host, policy::LoadContext& context) {
  const auto set = host.environment.find("SBX_POLICY");
  if (set == host.environment.end() || set->second.empty()) return;
  context.default_policy = set->second;
  context.default_policy_file = "SBX_POLICY";
}

}  // namespace

Result<UserSettings> user_settings(const host::Host& host) {
  UserSettings result;
  policy::LoadContext& context = result.context;
  context = {.home = host.home, .working_directory = host.working_directory};
  context.policy_directories.emplace_back("/etc/sbx/policies");
  const std::string directory = config_directory(host);
  if (directory.empty()) {
    take_variable(host, context);
    return result;
  }
  context.policy_directories.push_back(directory + "/policies");
  const policy::Config config = SBX_TRY(config_in(directory));
  const std::string file = directory + "/config.toml";
  if (auto real = host.files->canonical(file)) {
    context.settings_files = policy::links_on_the_way(file);
    context.settings_files.push_back(std::move(*real));
  }
  context.default_policy = config.policy;
  context.default_policy_file = file;
  context.isolation = config.isolation;
  take_variable(host, context);
  result.keeps_record = config.keep_record;
  return result;
}

Result<policy::LoadContext> load_context(const host::Host& host) {
  UserSettings result = SBX_TRY(user_settings(host));
  return std::move(result.context);
}

}  // namespace sbx::run
