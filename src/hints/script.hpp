#pragma once

#include <string>
#include <vector>

#include "host/host.hpp"
#include "policy/policy.hpp"

namespace sbx::hints {

/// The first 64 KiB of the script that was typed; empty if the first word is none that can be read.
/// Empty too where programs change files of the host: they can have put a link to any other file in
/// its place, and a hint would tell what stands there. `host`: with the files of local_view().
[[nodiscard]] std::string head_of_script(const policy::Policy& policy, const host::Host& host,
                                         const std::vector<std::string>& typed);

}  // namespace sbx::hints
