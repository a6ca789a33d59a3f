#pragma once

#include <string>
#include <vector>

#include "policy/load.hpp"

/// The findings of `sbx policy check` in machine-readable formats.
namespace sbx::cli::policy_verb {

struct Checked {
  std::string file;                     ///< as typed
  policy::Findings findings{};          ///< empty: the file is valid
  std::vector<std::string> warnings{};  ///< of a valid file
};

/// One JSON object: schema "sbx.check/1".
[[nodiscard]] std::string findings_json(const std::vector<Checked>& files);
/// Workflow commands: "::error file=...,line=...::...", one line each.
[[nodiscard]] std::string findings_github(const std::vector<Checked>& files);
/// A SARIF 2.1.0 log with one run.
[[nodiscard]] std::string findings_sarif(const std::vector<Checked>& files);

}  // namespace sbx::cli::policy_verb
