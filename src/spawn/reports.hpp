#pragma once

#include <optional>
#include <vector>

#include "base/control.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The supervisor's side of the messages in base/control.hpp.
namespace sbx::spawn {

struct ReceivedReport {
  control::Report report{};
  std::vector<UniqueFd> fds;
};

/// Waits for one report with its descriptors; empty at end of file.
[[nodiscard]] std::optional<ReceivedReport> receive_report(int control);

/// Errors: setup (PID 1 is dead).
[[nodiscard]] Status send_order(int control, control::FromSupervisor what);

}  // namespace sbx::spawn
