#pragma once

#include <string>

#include "protocol/requests.hpp"
#include "workspace/changes.hpp"
#include "workspace/copy.hpp"

namespace sbx::session {

/// What a client sees of the changes: a list, a diff or a patch, as it has asked. `session`: its
/// name, for the command that lists more.
[[nodiscard]] protocol::ChangesAnswer seen_changes(const workspace::Copy& copy,
                                                   workspace::ChangeSet changes,
                                                   const protocol::ChangesRequest& asked,
                                                   const std::string& session);

}  // namespace sbx::session
