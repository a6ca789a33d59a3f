#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The machine's /dev/shm while one program has it. It was empty before, so what is in it later was
/// made meanwhile: by the program, or by others beside it.
namespace sbx::workspace {

class SharedMemory {
 public:
  SharedMemory() = default;
  /// Takes its lock, flock(2), for a program with this uid. The lock is that of the open directory:
  /// it is free when this object, and the copy of lock() in the keeper, are closed, so no process
  /// of the program is left then, not even where this process was killed. A program can hold the
  /// lock only while it runs, or by the hand of somebody outside who may hold it anyway. What a
  /// killed run of root has left is removed. Errors: host "no-shared-memory", with a way to retry.
  [[nodiscard]] static Result<SharedMemory> take(uid_t uid);
  SharedMemory(SharedMemory&&) noexcept = default;
  SharedMemory& operator=(SharedMemory&&) noexcept = default;
  ~SharedMemory();

  /// -1: it was not taken.
  [[nodiscard]] int lock() const { return place_.get(); }
  /// When the program's processes have ended: removes its files. Under the caller's own uid nobody
  /// knows which are its files and which the caller's: those that a process uses stay, and are
  /// named.
  std::vector<Degraded> clear();
  /// Removes the files of a program that has died with its supervisor, and had that uid to itself.
  /// Takes the lock for that, if it has it not: then no run has files there, whatever its uid is.
  /// False: another process has the lock, maybe the keeper of that very program.
  [[nodiscard]] bool clear_after(uid_t died) const;

 private:
  UniqueFd place_;
  uid_t uid_ = 0;
  bool is_cleared_ = false;
};

}  // namespace sbx::workspace
