#include "cli/mcp_install/look.hpp"

#include <utility>

#include "base/text.hpp"
#include "cli/mcp_install/registration.hpp"
#include "cli/mcp_install/target.hpp"

namespace sbx::cli::mcp_install {
namespace {

Result<Found> found_at(const Client& client, const std::string& name, const Location& location) {
  const auto read = [&]() -> Result<Found> {
    const Target target = SBX_TRY(Target::open(location.root, location.below));
    return found_in(client, name, target.text());
  };
  auto found = read();
  if (!found)
    found.error().message =
        "'" + printable(location.path()) + "' can't be read: " + found.error().message;
  return found;
}

/// Returns whether the file says anything about the shell.
Result<bool> look_at_shell(const Client& client, const Location& location, Seen& seen) {
  const Found found = SBX_TRY(found_at(client, "", location));
  if (found.denies_shell) {
    seen.denies_shell = true;
    seen.shell_path = location.path();
  }
  // Lists of several files add up.
  return found.denies_shell || (found.decides_shell && !client.shell_is_list);
}

}  // namespace

Result<Seen> look(const Client& client, const std::string& name, Scope scope,
                  const host::Host& host) {
  const Location registering = SBX_TRY(locate(client.registering, scope, host));
  Found found = SBX_TRY(found_at(client, name, registering));
  Seen seen{.path = registering.path(), .words = std::move(found.words), .is_off = found.is_off};
  if (*client.shell_key == '\0') return seen;
  const Location settings = SBX_TRY(locate(client.settings, scope, host));
  const bool is_decided = SBX_TRY(look_at_shell(client, settings, seen));
  if (scope == Scope::user || is_decided) return seen;
  const Location of_user = SBX_TRY(locate(client.settings, Scope::user, host));
  (void)SBX_TRY(look_at_shell(client, of_user, seen));
  return seen;
}

}  // namespace sbx::cli::mcp_install
