#include "workspace/allowance.hpp"

#include <algorithm>

#include <sbx/units.hpp>

namespace sbx::workspace {

std::string reason_beyond(const OutLimits& limits, const OutSum& sum, std::string_view path,
                          std::uint64_t bytes) {
  // A session takes them at its start.
  constexpr const char* kCure = ", which --set raises at the start";
  const auto depth = std::ranges::count(path, '/');
  if (static_cast<std::uint64_t>(depth) > limits.max_depth)
    return "deeper than filesystem.outputs.max_depth = " + std::to_string(limits.max_depth) + kCure;
  if (sum.files >= limits.max_files)
    return "beyond filesystem.outputs.max_files = " + std::to_string(limits.max_files) + kCure;
  if (bytes > limits.max_bytes - sum.bytes)
    return "beyond filesystem.outputs.max_bytes = \"" + to_text(Bytes{limits.max_bytes}) + '"' +
           kCure;
  return {};
}

}  // namespace sbx::workspace
