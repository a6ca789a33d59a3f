#pragma once

#include <cstdint>
#include <functional>

#include "network/offline.hpp"
#include "policy/addresses.hpp"
#include "supervise/settings.hpp"

namespace sbx::run {

/// The program is about to reach this place: what a rule with many ports allows is opened.
using Expect = std::function<void(const policy::Address& address, std::uint16_t port)>;

/// Looks at each connect(2) while its caller waits. `offline`: names attempts where there is no
/// network; else null, and `expect` hears where connections lead. Decides nothing.
[[nodiscard]] supervise::Note connect_note(network::Offline* offline, Expect expect);

}  // namespace sbx::run
