#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workspace/changes.hpp"
#include "workspace/select.hpp"

/// `--apply`: makes the changes of a run in the directory of the host.
namespace sbx::workspace {

struct Applied {
  std::vector<Change> done;
  std::vector<Left> conflicts;  ///< the host's file changed since the run began: it stays
  std::vector<Left> left;
  bool stopped = false;  ///< `stop` returned true: the rest is in `left`
};

struct Applying {
  std::function<void()> waits;  ///< called before waiting for another sbx that applies there
  std::function<bool()> stop;   ///< asked before each change: true leaves the rest undone
};

/// File by file: each is its old or its new self at every moment. What is as it should be already is
/// done, so that an application that was killed can be finished. Waits while another run applies to
/// the same directory; removes what one that was killed left there. Errors: host (nothing was done).
[[nodiscard]] Result<Applied> apply(const Copy& copy, const Selection& selection,
                                    const Applying& how = {});

/// What would be a conflict now. Nothing is written.
[[nodiscard]] std::vector<Left> conflicts_now(const Copy& copy, const std::vector<Change>& changes);

}  // namespace sbx::workspace
