#pragma once

#include <string>

#include "base/result.hpp"
#include "host/host.hpp"
#include "policy/load.hpp"

namespace sbx::run {

/// The user's own settings.
struct UserSettings {
  policy::LoadContext context;
  bool keeps_record = false;  ///< `record = "keep"`
};
[[nodiscard]] Result<UserSettings> user_settings(const host::Host& host);

/// Where named policies are searched, and the default policy of ~/.config/sbx/config.toml.
/// XDG_CONFIG_HOME counts only if it lies below the home directory: an environment set by somebody
/// else must not choose the policy. Errors: policy (config.toml).
[[nodiscard]] Result<policy::LoadContext> load_context(const host::Host& host);

}  // namespace sbx::run
