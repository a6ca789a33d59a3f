#pragma once

#include <cstdint>
#include <string>

#include "cli/invocation.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// Runs what was typed as a call in the session NAME, and delivers its record. Returns the exit
/// status.
[[nodiscard]] int session_exec(const Invocation& typed, const host::Host& host,
                               const std::string& name);
/// For what keeps that from being asked for: says `error`, and writes the record where one is
/// wanted.
enum class WasReported : std::uint8_t { no, yes };
[[nodiscard]] int refuse_exec(const Invocation& typed, const host::Host& host,
                              const std::string& name, const Error& error,
                              WasReported reported = WasReported::no);

}  // namespace sbx::cli
