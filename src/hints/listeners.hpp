#pragma once

#include "host/host.hpp"

namespace sbx::hints {

/// Whether a TCP socket of the host listens on this port of the loopback or of all addresses, by
/// /proc/net/tcp and tcp6. Nothing is connected to.
[[nodiscard]] bool listens_on_loopback(const host::Files& files, unsigned port);

}  // namespace sbx::hints
