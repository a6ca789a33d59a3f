#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workspace/changes.hpp"
#include "workspace/copy.hpp"

/// What of applied changes programs of the host may follow or run next.
namespace sbx::changes {

/// Why a program of the host had better not follow a new link: a noun with what it leads to, judged
/// by its text alone. Empty: it leads to another file of the directory.
[[nodiscard]] std::string danger_of_link(const workspace::Copy& copy, const Change& link,
                                         std::string_view to);

/// Links that may lead out, and directories of programs, each once: package managers fill them with
/// hundreds of names, so they are told and not protected.
[[nodiscard]] std::vector<workspace::Left> hazards_of(const workspace::Copy& copy,
                                                      const std::vector<Change>& changes);

}  // namespace sbx::changes
