#pragma once

#include <string>
#include <vector>

#include "changes/kept.hpp"

/// What `sbx session apply` wrote, so that a later one does not take it for the work of somebody
/// else. The session lives on, and compares with the files of the host as they were at its start.
namespace sbx::changes {

/// Adds to the notes `name` what of a set was applied and is still so on the host. A failure costs
/// a later apply a conflict, nothing else.
void note_as_applied(const Store& store, const std::string& name, const Kept& kept,
                     const std::vector<Change>& done);

/// Lets `copy` know the notes `name`, if there are any.
void take_notes(const Store& store, const std::string& name, Copy& copy);

}  // namespace sbx::changes
