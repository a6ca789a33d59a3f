#include "plan/tier/shared_memory.hpp"

#include "plan/tier/weaker_note.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace sbx::plan {
namespace {

constexpr const char* kWithout =
    "/dev/shm is refused: shared memory and semaphores with names, and the locks of Python's "
    "multiprocessing, fail";
constexpr const char* kOfOwnUid =
    "/dev/shm is the machine's, if it is empty then: what other programs make there while the "
    "program runs can be read where permissions allow; what the program leaves there is removed";
constexpr const char* kOfCallers =
    "/dev/shm is the machine's, if it is empty then: what the caller's other programs make there "
    "while the program runs can be read and changed, and is removed at the end unless a process "
    "uses it";
constexpr const char* kCounted = "no kernel counts what one program holds in /dev/shm";

void note(Plan& plan, Promise promise, std::string why, std::string instead) {
  plan.degraded.push_back(
      {.promise = promise, .why = std::move(why), .instead = std::move(instead)});
}

/// Empty: a run may have it.
std::string why_not_lent(const host::Host& host, const Plan& plan) {
  constexpr mode_t kEverybodys = S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO;
  // Only a run takes its lock.
  if (plan.calls > 0) return "one run at a time has '/dev/shm', and a session has many";
  const auto facts = host.files->look(kSharedMemory);
  const auto real = host.files->canonical(kSharedMemory);
  if (!facts || !real || *real != kSharedMemory || facts->type != host::FileType::directory)
    return "'/dev/shm' is not a directory here";
  // The owner of a sticky directory may remove and rename what others have in it.
  if (plan.identity.callers_own && facts->uid == host.uid)
    return "the program would own '/dev/shm'";
  if ((facts->mode & kEverybodys) != kEverybodys)
    return "'/dev/shm' does not have mode 1777, with which everybody may make files there";
  return {};
}

}  // namespace

void lend_shared_memory(const host::Host& host, Plan& plan) {
  plan.lends_shared_memory = why_not_lent(host, plan).empty();
  if (!plan.lends_shared_memory) return;
  plan.access.push_back(
      {.path = kSharedMemory,
       .rights = {.execute = false, .write = true, .make = true, .special = false, .plain = true}});
  plan.live_in_memory.emplace_back(kSharedMemory);
}

void note_shared_memory(const host::Host& host, Plan& plan) {
  if (const std::string why = why_not_lent(host, plan); !why.empty()) {
    if (plan.calls == 0) add_to_weaker_note("the locks of multiprocessing fail: " + why, plan);
    return note(plan, Promise::own_ipc, why, kWithout);
  }
  note(plan, Promise::own_ipc, "no namespaces here",
       plan.identity.callers_own ? kOfCallers : kOfOwnUid);
  note(plan, Promise::disk, kCounted,
       "what its file system grows by counts, apart from the private directory and whoever writes "
       "there, looked at every 0.5 to 50 ms");
}

void withhold_shared_memory(std::string why, Plan& plan) {
  plan.lends_shared_memory = false;
  std::erase_if(plan.access, [](const Access& each) { return each.path == kSharedMemory; });
  std::erase(plan.live_in_memory, kSharedMemory);
  std::erase_if(plan.degraded, [](const Degraded& each) {
    return each.instead == kOfOwnUid || each.instead == kOfCallers || each.why == kCounted;
  });
  // A program that is refused names neither sbx nor the reason.
  add_to_weaker_note("the locks of multiprocessing fail: " + why, plan);
  note(plan, Promise::own_ipc, std::move(why), kWithout);
}

}  // namespace sbx::plan
