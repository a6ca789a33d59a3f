#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/tell.hpp"
#include "changes/kept_facts.hpp"
#include "workspace/apply.hpp"
#include "workspace/collect.hpp"
#include "workspace/copy.hpp"

/// Changes of a workspace, for people: deletions first. Names and lines come from the program, so
/// everything is made safe for a terminal.
namespace sbx::changes {

enum class Texts : bool { left_out, shown };

/// `--diff` and the preview of `--apply`, headed "sbx: 3 changes … in DIRECTORY". `rest` says where
/// what is beyond the caps can be read.
[[nodiscard]] std::string changes_words(const workspace::Copy& copy,
                                        const workspace::ChangeSet& changes, Texts texts,
                                        const Paint& paint,
                                        const std::string& rest = "--report FILE");
/// The same without the head, for an answer on stdout. `stale`: names that the host has changed
/// since the run.
[[nodiscard]] std::string listing_words(const workspace::Copy& copy,
                                        const workspace::ChangeSet& changes, Texts texts,
                                        const Paint& paint, const std::string& rest,
                                        const std::set<std::string>& stale = {});
/// What a pattern that matches none of these paths was probably meant to be: one for a file in a
/// directory, a path of the host, or a typing mistake. Empty if nothing is near.
[[nodiscard]] std::string meant_pattern(const std::string& pattern,
                                        const std::vector<std::string_view>& names);
/// "3 changes: 1 deleted, 2 modified".
[[nodiscard]] std::string tally_words(const std::vector<Change>& changes);
[[nodiscard]] std::string collected_words(const workspace::Collected& collected,
                                          const std::vector<std::string>& patterns,
                                          const std::string& directory);
/// Beside collected_words(): the typed patterns that brought nothing where another one did.
[[nodiscard]] std::string uncollected_words(const workspace::Collected& collected,
                                            const std::vector<std::string>& typed);
/// Beside collected_words() of a run that is over: what it changed goes with it. Files that were
/// copied make that easy to miss. Empty where collected_words() has it, or nobody may miss it.
[[nodiscard]] std::string changed_and_lost_words(const workspace::Collected& collected);
/// What the cells of a notebook wrote in a copy, which ends with their session. `are_copied`: --out
/// has copied the files that are new. Empty where nobody may miss it.
[[nodiscard]] std::string lost_by_cells_words(const std::vector<Change>& changes, bool are_copied,
                                              const std::string& notebook);
/// What a set that was kept in `state_directory` has not.
[[nodiscard]] std::string lost_words(const std::vector<LostChange>& lost,
                                     const std::string& state_directory);
[[nodiscard]] std::string applied_words(const workspace::Applied& applied,
                                        const std::string& directory);
/// Why it has not all changes. Empty: it has.
[[nodiscard]] std::string incomplete_words(const workspace::ChangeSet& changes);
[[nodiscard]] std::string left_words(const std::vector<workspace::Left>& left);
/// Empty where there are none.
[[nodiscard]] std::string hazard_words(const std::vector<workspace::Left>& hazards);
[[nodiscard]] std::string conflict_words(const std::vector<workspace::Left>& conflicts);
/// `command`: what shows the patch.
[[nodiscard]] std::string conflict_help(const std::string& command);

}  // namespace sbx::changes
