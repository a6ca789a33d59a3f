#pragma once

#include <string>
#include <vector>

#include "base/person.hpp"
#include "base/tell.hpp"
#include "base/unique_fd.hpp"
#include "workspace/apply.hpp"

/// The conversation around an application: preview, question, words; shared by `sbx run --apply`
/// and `sbx changes apply`.
namespace sbx::changes {

enum class Preview : std::uint8_t { none, names, everything };

struct Request {
  std::vector<std::string> patterns;      ///< none: everything
  std::vector<std::string> policy_files;  ///< of the run: never written to
  bool asks = true;
  Preview preview = Preview::everything;  ///< before the question
  std::string state_directory;            ///< the user's; empty: none
  bool silent = false;
  std::string rest = "--report FILE";  ///< where what the preview leaves out can be read
};

struct ApplyEnd {
  workspace::Applied applied;
  bool wanted = true;  ///< false: the answer was no, or the list of changes is not complete
  bool was_asked = false;
  bool all_met = true;  ///< false: a pattern means no change
  int signal = 0;       ///< the one that stopped it; what it had not reached is in `applied.left`

  /// Something that was asked for is not as it was asked for; nobody said no.
  [[nodiscard]] bool leaves_something() const {
    return wanted && (applied.has_failures() || applied.is_incomplete() || applied.stopped);
  }
};

/// Errors: usage "nobody-to-ask", when the user has to be asked and can't be.
[[nodiscard]] Status check_asking(bool asks, const Person& person);

/// Asks if requested, applies, and tells what was done. SIGINT and its like are held
/// back while it writes, so that no file is left half written. Errors: host (nothing was done).
[[nodiscard]] Result<ApplyEnd> apply_changes(const workspace::Copy& copy,
                                             const workspace::ChangeSet& changes,
                                             const Request& request, const Paint& paint,
                                             const Person& person);

}  // namespace sbx::changes
