#pragma once

#include <chrono>
#include <functional>

#include "base/result.hpp"

/// The lock of a directory of the host that sbx writes to: flock(2), which goes with the
/// descriptor.
namespace sbx::workspace {

struct Waiting {
  std::function<void()> begins;  ///< called before the first wait
  std::function<bool()> stop;    ///< asked while waiting: true gives up
  std::chrono::milliseconds patience = std::chrono::seconds(5);  ///< with anyone who is not sbx
};

/// Waits until no other sbx brings files out to this directory. Anyone who can open the directory
/// can hold its lock, such as a program in a live grant: that is waited for during `patience` only.
/// Errors: host "cannot-lock", which names the process; "stopped" when `stop` returned true.
[[nodiscard]] Status lock_directory(int directory, const Waiting& waiting);

}  // namespace sbx::workspace
