#pragma once

#include <cstdint>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "plan/plan.hpp"

/// Live folders, looked through again when the run is over.
namespace sbx::plan {

/// At most this many names are listed.
inline constexpr std::size_t kMostAppeared = 1000;

/// Adds the guarded names that were not there when the plan was made, and the hazards that are newer
/// than `began` (nanoseconds of the real-time clock); `degraded` says of a folder that it could not
/// be looked through.
void note_appeared(const Plan& plan, const host::Host& host, std::int64_t began, Outcome& outcome);

}  // namespace sbx::plan
