#pragma once

#include <cstdint>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "plan/plan.hpp"

/// A second look through the live grants, after the run.
namespace sbx::plan {

/// Maximum number of names listed.
inline constexpr std::size_t kMostAppeared = 1000;

/// Adds to `outcome` the guarded names that did not exist when the plan was made, and the hazards
/// changed after `began` (nanoseconds of the real-time clock). A directory that can't be read is
/// listed in `degraded`.
void note_appeared(const Plan& plan, const host::Host& host, std::int64_t began, Outcome& outcome);

}  // namespace sbx::plan
