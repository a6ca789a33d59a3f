#pragma once

#include <functional>
#include <string>
#include <vector>

/// A child process that tries something and answers in texts; whatever it does to itself ends with
/// it.
namespace sbx::doctor {

using Texts = std::vector<std::string>;

/// What `attempt` gave, or nothing when the child died or did not answer in time.
[[nodiscard]] Texts ask_child(const std::function<Texts()>& attempt);

}  // namespace sbx::doctor
