#pragma once

#include <string>

#include "host/host.hpp"
#include "plan/plan.hpp"

/// /dev/shm, where there is no other root to have one in: C libraries have this path for shared
/// memory and semaphores with names, shm_overview(7), sem_overview(7). What is in it is other
/// programs', so it is lent when it is empty, and to one run at a time
/// (workspace/shared_memory.hpp).
namespace sbx::plan {

inline constexpr const char* kSharedMemory = "/dev/shm";

/// Lends it, if it is a directory where everybody may make files of their own.
void lend_shared_memory(const host::Host& host, Plan& plan);
/// Says what that means, or that it is refused.
void note_shared_memory(const host::Host& host, Plan& plan);
/// A plan that lends it does so no longer.
void withhold_shared_memory(std::string why, Plan& plan);

}  // namespace sbx::plan
