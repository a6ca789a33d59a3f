#pragma once

#include <string>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/steps.hpp"
#include "plan/request.hpp"

/// `--in FILE[:TARGET]`: files that are copied in. The copy belongs to the program: it is writable,
/// and gone after the run unless it is changed and brought out.
namespace sbx::plan {

/// Limit for all files of one run together: they pass through sbx's memory.
inline constexpr std::uint64_t kMostInputBytes = std::uint64_t{64} << 20;

/// What an input must not conflict with, and where it may go.
struct InputPlaces {
  const View& view;
  const std::string& working_directory;  ///< inside
  const std::vector<Mount>& steps;       ///< of grants, workspace and program
};

/// One step for each file, to follow those of `places`. Errors: usage "bad-input",
/// "input-too-large"; policy "denied-grant", "widens-locked".
[[nodiscard]] Result<std::vector<Mount>> input_steps(const policy::Policy& policy,
                                                     const host::Host& host,
                                                     const std::vector<Input>& inputs,
                                                     const DenyRules& denials,
                                                     const InputPlaces& places);

}  // namespace sbx::plan
