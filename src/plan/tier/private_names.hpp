#pragma once

namespace sbx::plan {

/// Private directories that runs without namespaces make are named "sbx-" and 16 hexadecimal
/// digits.
inline constexpr const char* kPrivatePlaces = "/tmp";
inline constexpr const char* kPrivateName = "sbx-";

}  // namespace sbx::plan
