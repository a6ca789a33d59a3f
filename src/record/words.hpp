#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "base/tell.hpp"
#include "plan/plan.hpp"
#include "policy/load.hpp"

/// What sbx says to people. Every function gives whole lines, each prefixed "sbx: " where it goes
/// to stderr.
namespace sbx::record {

/// Message, place with the source line and a caret, hint.
[[nodiscard]] std::string error_text(const Error& error, const Paint& paint);
[[nodiscard]] std::string findings_text(const policy::Findings& findings, const Paint& paint);

/// Everything worth saying after a run; empty when it was uneventful.
[[nodiscard]] std::string outcome_words(const plan::Plan& plan, const Outcome& outcome,
                                        bool verbose, const Paint& paint);

/// `--dry-run` for people.
[[nodiscard]] std::string plan_words(const policy::Policy& policy, const plan::Plan& plan);

/// The answer of a command, on stdout. False: it is not all there, which has been told on stderr unless
/// the reader went away (EPIPE).
[[nodiscard]] bool print_answer(const std::string& text);

}  // namespace sbx::record
