#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "policy/policy.hpp"
#include "protocol/cell_record.hpp"
#include "run/launch.hpp"

/// From what is known of a cell to its record.
namespace sbx::record {

/// How a cell ended. Who supervises its context decides that, never its interpreter.
struct CellEnd {
  using How = protocol::CellStatus;
  How how = How::answered;
  std::optional<Budget> budget{};
  std::optional<int> exit_code{};
  std::optional<int> signal{};
  std::string detail{};  ///< empty and cancelled: by the signal
};

using protocol::CellState;

struct Cell {
  std::string id;
  run::CallName name;
  std::string context;
  std::string language;
  std::optional<policy::Policy> policy;
  CellEnd end;
  CellState state = CellState::fresh;
  std::string lost_because{};  ///< where an earlier interpreter lost it; empty: unknown
  Stream out;
  Stream err;
  std::optional<WriteError> write_error;              ///< the exit status is then 125
  std::optional<protocol::InterpreterAnswer> answer;  ///< checked
  std::vector<Denial> denials;
  std::vector<LimitMet> limits_met;
  std::vector<NetworkFailure> network_failures;
  std::vector<Hint> hints;
  std::uint64_t late_bytes = 0;  ///< written since the cell before
  std::uint64_t wall_ms = 0;
  std::uint64_t cpu_ms = 0;
  std::vector<Degraded> degraded;
};

[[nodiscard]] protocol::CellRecord record_of(const Cell& cell);
/// The record of a cell that did not begin.
[[nodiscard]] protocol::CellRecord record_of(const Cell& cell, const Error& error);

/// The exit status of `sbx session eval`.
[[nodiscard]] int exit_status_of(const Cell& cell);

/// How the context's own end is that of the cell that ran.
[[nodiscard]] CellEnd end_with(const Outcome& outcome);

}  // namespace sbx::record
