#pragma once

#include <functional>
#include <string>
#include <vector>

/// A child process that tries something and answers with texts. Its effects on itself end with it.
namespace sbx::doctor {

using Texts = std::vector<std::string>;

/// The result of `attempt`; empty if the child died or did not answer in time.
[[nodiscard]] Texts ask_child(const std::function<Texts()>& attempt);

}  // namespace sbx::doctor
