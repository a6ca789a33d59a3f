#pragma once

namespace sbx::session {

/// Whether the other end of a connection may use the session, or be one: the same user or root, and
/// no process of a sandbox, which has the same uid on the host but lives in a PID namespace below.
[[nodiscard]] bool may_use(int connection);

}  // namespace sbx::session
