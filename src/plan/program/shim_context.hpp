#pragma once

#include <map>
#include <string>

namespace sbx::plan {

/// The environment in which a shim runs.
struct ShimContext {
  const std::map<std::string, std::string>& environment;
  std::string working_directory;
  std::string home;
};

}  // namespace sbx::plan
