#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/tell.hpp"
#include "plan/plan.hpp"
#include "policy/load.hpp"

/// sbx's messages for people. Every function returns whole lines, prefixed with "sbx: " if they go
/// to stderr.
namespace sbx::record {

/// "SIGINT", or "signal 40".
[[nodiscard]] std::string signal_name(int signal);

/// Message, position with the source line and a caret, hint.
[[nodiscard]] std::string error_text(const Error& error, const Paint& paint);
[[nodiscard]] std::string findings_text(const policy::Findings& findings, const Paint& paint);

/// Everything worth reporting after a run; empty if it was uneventful. `session`: that
/// whose call it was, which is to be started with what would allow more. `policy` knows
/// which option set a limit.
[[nodiscard]] std::string outcome_words(const plan::Plan& plan, const Outcome& outcome,
                                        bool verbose, const Paint& paint,
                                        const plan::Plan* session = nullptr,
                                        const policy::Policy* policy = nullptr);

/// What is to be changed for a cure: the command itself, or the start of the session in which it
/// ran.
enum class Cured : std::uint8_t { command, session };

/// What would allow it, as typed: the option first, which adds to the run's policy and needs no
/// file; then the policy's line.
[[nodiscard]] std::string cure_of_denial(const Denial& denial);

/// What was refused, each with its cure.
[[nodiscard]] std::string denial_words(const std::vector<Denial>& denials, const Paint& paint,
                                       Cured where);

/// What a program may have met, at most three hints.
[[nodiscard]] std::string hint_words(const std::vector<Hint>& hints, Cured where);

/// The limits that a cell has met, as its record has them.
[[nodiscard]] std::string limit_words(const Json& record, Cured where);

/// "to allow more" and the cure of a budget that was spent; empty without one.
[[nodiscard]] std::string more_words(const std::string& cure, Cured where);

/// `--dry-run` for people.
[[nodiscard]] std::string plan_words(const policy::Policy& policy, const plan::Plan& plan);

}  // namespace sbx::record
