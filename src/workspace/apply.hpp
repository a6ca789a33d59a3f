#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workspace/changes.hpp"
#include "workspace/select.hpp"

/// `--apply`: makes the changes of a run in the directory of the host.
namespace sbx::workspace {

/// Why a conflict of a part of a git repository holds back the rest of it.
inline constexpr std::string_view kHeldBack = "another part of this repository is not applied";

struct Applied {
  std::vector<Change> done;
  std::size_t already = 0;      ///< of `done`: it was so before
  std::vector<Left> conflicts;  ///< the host's file changed since the run began: it stays
  std::vector<Left> left;
  /// Of `done`, as far as a caller has looked: what programs of the host may follow or run.
  std::vector<Left> hazards;
  /// Directories with temporary names that a killed application left: nothing else may have what is
  /// in them.
  std::vector<std::string> leftovers;
  bool stopped = false;  ///< `stop` returned true: the rest is in `left`

  /// Something could not be written.
  [[nodiscard]] bool has_failures() const;
  /// Something else is as it was, against what was asked for.
  [[nodiscard]] bool is_incomplete() const;
};

struct Applying {
  std::function<void()> waits;  ///< called before waiting for another sbx that applies there
  std::function<bool()> stop;   ///< asked before each change: true leaves the rest undone
  std::string state_directory;  ///< where leftovers.hpp notes; empty: nothing is noted
};

/// All new content is written beside its place first; then it takes its names, and then comes what
/// is deleted. Each file is its old or its new self at every moment, and what moved is in one of
/// its places. If something can't be written, nothing is changed; if something is a conflict,
/// nothing is deleted. What is as it should be already is done, so that an application that was
/// killed can be finished. Waits while another run applies to the same directory; removes what one
/// that was killed left. Errors: host (nothing was done).
[[nodiscard]] Result<Applied> apply(const Copy& copy, const Selection& selection,
                                    const Applying& how = {});

/// What would be a conflict now. Nothing is written.
[[nodiscard]] std::vector<Left> conflicts_now(const Copy& copy, const std::vector<Change>& changes,
                                              const Links& links);

}  // namespace sbx::workspace
