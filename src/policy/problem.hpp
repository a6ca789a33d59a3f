#pragma once

#include <expected>
#include <string>

namespace sbx::policy {

/// What is wrong with a value, before anybody knows where it stands.
struct Problem {
  std::string code;
  std::string message;
  std::string hint{};
};
template <class T>
using Checked = std::expected<T, Problem>;

}  // namespace sbx::policy
