#pragma once

#include <string>

#include "base/result.hpp"
#include "host/host.hpp"
#include "policy/load.hpp"

namespace sbx::run {

/// What the user's own settings say.
struct UserSettings {
  policy::LoadContext context;
  bool keeps_record = false;  ///< `record = "keep"`
};
[[nodiscard]] Result<UserSettings> user_settings(const host::Host& host);

/// Where named policies are looked for, and the default policy of ~/.config/sbx/config.toml.
/// XDG_CONFIG_HOME counts only where it lies below the home: an environment that a stranger set
/// must not choose the policy. Errors: policy (config.toml).
[[nodiscard]] Result<policy::LoadContext> load_context(const host::Host& host);

}  // namespace sbx::run
