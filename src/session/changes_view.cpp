#include "session/changes_view.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/tell.hpp"
#include "changes/facts.hpp"
#include "changes/patch.hpp"
#include "changes/words.hpp"
#include "plan/files/path_text.hpp"
#include "workspace/select.hpp"

namespace sbx::session {
namespace {

void keep_below(const std::string& path, std::vector<Change>& changes) {
  std::erase_if(changes,
                [&](const Change& each) { return !plan::is_within("/" + each.path, "/" + path); });
}

}  // namespace

protocol::ChangesAnswer seen_changes(const workspace::Copy& copy, workspace::ChangeSet changes,
                                     const protocol::ChangesRequest& asked,
                                     const std::string& session) {
  if (asked.below) keep_below(*asked.below, changes.changes);
  protocol::ChangesAnswer seen{.changes = changes.changes, .left_out = changes.left_out};
  const auto texts =
      asked.view == protocol::View::diff ? changes::Texts::shown : changes::Texts::left_out;
  const std::string rest = "sbx session changes --json " + session;
  if (asked.view == protocol::View::patch) {
    // As `sbx changes diff --patch` makes it: git-apply(1) refuses .git, for one.
    workspace::Selection selection = workspace::select(copy, changes, {}, {});
    changes::Patch patch = changes::make_patch(copy, selection.changes);
    patch.left.insert(patch.left.begin(), selection.left.begin(), selection.left.end());
    seen.text.emplace(patch.text);
    seen.left = changes::left_facts(patch.left);
  } else if (asked.view != protocol::View::json) {
    seen.text.emplace(changes::tally_words(changes.changes) + "\n" +
                      changes::listing_words(copy, changes, texts, {.on = asked.colors}, rest));
  }
  return seen;
}

}  // namespace sbx::session
