#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/files/survey.hpp"

/// Files with several names in what is shown copy-on-write: a link to a file elsewhere, as in a
/// store of packages, is none.
namespace sbx::plan {

/// What the start may copy, so that names of one file stay so.
struct LinkBounds {
  std::uint64_t bytes = 0;
  std::uint64_t names = 0;  ///< and directories
  std::uint64_t files = 2000;
};

/// Asked of a name below the source: whether the program sees the host's file there.
using IsVisible = std::function<bool(const Shown& shown, const std::string& name)>;

/// Fills mount::Layered::linked and unlinked, and says in `degraded` which files don't stay one:
/// beyond the bounds, with a set-ID bit, unreadable for the caller, with names on both sides of a
/// mount point.
void keep_links(const host::Host& host, const std::vector<Shown>& shown, LinkBounds bounds,
                const IsVisible& is_visible, std::vector<Mount>& steps,
                std::vector<Degraded>& degraded);

}  // namespace sbx::plan
