#pragma once

#include <vector>

#include "plan/files/steps.hpp"

namespace sbx::plan {

/// Adds the links by which the caller came to the working directory, as the shell's PWD has them: a
/// command line that was written with $PWD names files through them. What is visible under such a
/// name already stays as it is. Nothing where the directory is not visible under its own path, or
/// PWD names another one.
void add_way_here(const host::Host& host, const View& view, const DenyRules& denials,
                  const std::vector<Mount>& view_steps, std::vector<Mount>& steps);

}  // namespace sbx::plan
