#pragma once

#include <cstdint>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "policy/policy.hpp"

namespace sbx::session {

/// What the cells of a context have of the sandbox, and of the process of their interpreter. A test
/// stands in for it.
class CellSandbox {
 public:
  CellSandbox() = default;
  CellSandbox(const CellSandbox&) = delete;
  CellSandbox& operator=(const CellSandbox&) = delete;
  virtual ~CellSandbox() = default;

  [[nodiscard]] virtual const policy::Policy& policy() const = 0;
  [[nodiscard]] virtual const std::vector<Degraded>& degraded() const = 0;
  /// What appeared under a denied name since the last cell. Errors: it can't be hidden.
  [[nodiscard]] virtual Status look_for_denied_names(std::vector<Degraded>& degraded) const = 0;
  /// That former cells and calls have reached it.
  virtual void forget_memory_limit() = 0;

  // While the interpreter lives; as of the Supervisor.
  virtual void end(const Verdict& reason) = 0;
  [[nodiscard]] virtual std::uint64_t cpu_microseconds() = 0;
  virtual void renew_cpu_time() = 0;
  [[nodiscard]] virtual std::vector<Denial> take_denials() = 0;
  [[nodiscard]] virtual std::vector<LimitMet> take_limits_met(int status) = 0;
};

}  // namespace sbx::session
