#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// How much may be brought out, and whether one more file is within it.
namespace sbx::workspace {

/// `filesystem.outputs` of a policy.
struct OutLimits {
  std::uint64_t max_bytes = 0;
  std::uint64_t max_files = 0;
  std::uint64_t max_depth = 0;
};

/// What was brought out so far.
struct OutSum {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};

/// Why a file of `bytes` at `path` may not be brought out too; empty if it may.
[[nodiscard]] std::string reason_beyond(const OutLimits& limits, const OutSum& sum,
                                        std::string_view path, std::uint64_t bytes);

}  // namespace sbx::workspace
