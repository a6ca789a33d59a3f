#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "policy/policy.hpp"
#include "run/launch.hpp"

/// The record of a cell as JSON: schema "sbx.cell/1", schema/sbx.cell.1.json, sbx-record(5).
namespace sbx::record {

/// How a cell ended. Who supervises its context decides that, never its interpreter.
struct CellEnd {
  enum class How : std::uint8_t {
    answered,     ///< the interpreter said so, whatever it says
    over_budget,  ///< with `budget`
    interrupted,  ///< somebody else asked for that
    cancelled,    ///< by its own client, or with its context
    died,         ///< the interpreter ended, with `exit_code` or `signal` where they are known
    lost,         ///< the context was killed from outside, so that nobody knows
    denied,       ///< with syscalls.denied = "kill"
    setup_failed,
  };
  How how = How::answered;
  std::optional<Budget> budget{};
  std::optional<int> exit_code{};
  std::optional<int> signal{};
  std::string detail{};  ///< empty and cancelled: by the signal
};

/// Of what a context has remembered.
enum class CellState : std::uint8_t {
  fresh,  ///< "new": the cell is the first of its context
  kept,
  lost,  ///< it ended with this cell, or had ended before it
};

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
  std::optional<WriteError> write_error;  ///< the exit status is then 125
  Json answer;                            ///< the driver's, checked
  std::vector<Denial> denials;
  std::vector<LimitMet> limits_met;
  std::vector<NetworkFailure> network_failures;
  std::vector<Hint> hints;
  std::uint64_t late_bytes = 0;  ///< written since the cell before
  std::uint64_t wall_ms = 0;
  std::uint64_t cpu_ms = 0;
  std::vector<Degraded> degraded;
};

[[nodiscard]] Json cell_json(const Cell& cell);
/// The record of a cell that did not begin.
[[nodiscard]] Json cell_json(const Cell& cell, const Error& error);

/// The exit status of `sbx session eval`.
[[nodiscard]] int exit_status_of(const Cell& cell);

/// How the context's own end is that of the cell that ran.
[[nodiscard]] CellEnd end_with(const Outcome& outcome);

}  // namespace sbx::record
