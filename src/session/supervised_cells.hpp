#pragma once

#include <cstdint>
#include <vector>

#include "run/call.hpp"
#include "session/cell_sandbox.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {

/// The sandbox of the session, and the supervisor of the interpreter.
class SupervisedCells final : public CellSandbox {
 public:
  explicit SupervisedCells(const WorkerState& state) : state_(state) {}

  [[nodiscard]] const policy::Policy& policy() const override { return state_.held.policy(); }
  [[nodiscard]] const std::vector<Degraded>& degraded() const override {
    return state_.held.plan().degraded;
  }
  [[nodiscard]] Status look_for_denied_names(std::vector<Degraded>& degraded) const override {
    return state_.held.look_for_denied_names(degraded);
  }
  void forget_memory_limit() override {
    if (state_.group != nullptr) state_.group->forget_memory_limit();
  }
  void end(const Verdict& reason) override { supervisor->end(reason); }
  [[nodiscard]] std::uint64_t cpu_microseconds() override { return supervisor->cpu_microseconds(); }
  void renew_cpu_time() override { supervisor->renew_cpu_time(); }
  [[nodiscard]] std::vector<Denial> take_denials() override { return supervisor->take_denials(); }
  [[nodiscard]] std::vector<LimitMet> take_limits_met(int status) override {
    return supervisor->take_limits_met(status);
  }

  supervise::Supervisor* supervisor = nullptr;  ///< from when the interpreter lives

 private:
  const WorkerState& state_;
};

}  // namespace sbx::session
