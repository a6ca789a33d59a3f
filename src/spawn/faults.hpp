#pragma once

#include "base/result.hpp"
#include "spawn/handshake.hpp"

#include <string>
#include <vector>

/// The hook by which tests make a set-up stage fail or skip it. Compiles to nothing in release
/// builds.
namespace sbx::spawn {

struct StageFacts {
  child::Stage stage;
  std::string_view name;
  std::string_view kind;     ///< "construction" or "protection"
  std::string_view meaning;  ///< what is true after the stage
};
/// The stage table of handshake.hpp, in order.
[[nodiscard]] const std::vector<StageFacts>& stages();
[[nodiscard]] std::string_view stage_name(child::Stage stage);

/// From SBX_TEST_FAIL=<stage>:<errno number> or SBX_TEST_SKIP=<stage> in sbx's own environment.
[[nodiscard]] Result<child::Fault> fault_from_environment();

}  // namespace sbx::spawn
