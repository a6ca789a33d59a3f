#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "cli/invocation.hpp"
#include "plan/plan.hpp"
#include "policy/load.hpp"

/// What sbx says to people. Every function gives whole lines, each prefixed "sbx: " where it goes
/// to stderr.
namespace sbx::cli {

/// Escape sequences, or nothing.
struct Paint {
  bool on = false;
  [[nodiscard]] std::string bold(const std::string& text) const { return wrap("1", text); }
  [[nodiscard]] std::string red(const std::string& text) const { return wrap("1;31", text); }
  [[nodiscard]] std::string blue(const std::string& text) const { return wrap("1;34", text); }
  [[nodiscard]] std::string green(const std::string& text) const { return wrap("1;32", text); }

 private:
  [[nodiscard]] std::string wrap(const char* code, const std::string& text) const {
    return on ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }
};

/// Colour for a descriptor: --color, NO_COLOR (when not empty), TERM=dumb, and whether it is a
/// terminal.
[[nodiscard]] Paint paint_for(Color color, int descriptor);

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

/// "sbx: LINE\n" for each, made safe for a terminal.
[[nodiscard]] std::string note_lines(const std::vector<std::string>& notes);

}  // namespace sbx::cli
