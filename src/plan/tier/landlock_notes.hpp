#pragma once

#include <string_view>

#include "host/host.hpp"
#include "plan/plan.hpp"

/// What a program without namespaces loses, as the record names it.
namespace sbx::plan {

/// How note_landlock() begins to say what the program loses of IPC: where the supervisor names its
/// unix sockets, and where it doesn't.
inline constexpr std::string_view kNoOtherSockets = "datagram and abstract unix sockets";
inline constexpr std::string_view kNoNamedSockets = "unix sockets other than connected pairs";
/// Says each weakness.
void note_landlock(const host::Host& host, Plan& plan);

}  // namespace sbx::plan
