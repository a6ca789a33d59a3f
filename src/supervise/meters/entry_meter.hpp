#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

/// How many names live grants have gained, whoever made them: a walk through them, a piece at a time,
/// so that the loop is never held up. No kernel counts the names that one program makes. Not seen:
/// what was made and removed between two walks. A name of a directory is enough, so no file is
/// looked at.
class EntryMeter {
 public:
  EntryMeter() = default;
  /// Counts what is in `folders` now, before the command runs. One that can't be opened is left out.
  explicit EntryMeter(std::vector<std::string> folders);

  [[nodiscard]] bool is_needed() const { return !tops_.empty(); }
  /// Looks at some more names; true when a walk is complete and the numbers are new. A walk ends
  /// early above `most` new names.
  bool step(std::uint64_t most);
  /// A whole walk.
  void walk(std::uint64_t most);
  /// Names more than at the start; 0 while there are fewer.
  [[nodiscard]] std::uint64_t made() const { return made_; }
  /// A directory that this many walks in succession could not list, and that could be listed at the
  /// start or was not there; empty when there is none.
  [[nodiscard]] const std::string& closed() const { return closed_; }
  /// The last walk could not list one.
  [[nodiscard]] bool is_doubtful() const { return refused_ > 0; }

 private:
  struct Top {
    UniqueFd folder;
    std::string path;
  };
  struct Place {
    std::size_t top = 0;
    std::string path;  ///< below it
  };
  void begin(std::uint64_t most);
  void look_into(const Place& place);
  void note_closed(const Place& place);
  void complete();

  std::vector<Top> tops_;
  std::vector<std::string> closed_at_start_;
  std::vector<Place> waiting_;
  bool has_begun_ = false;  ///< the names at the start are counted
  bool walks_ = false;
  std::uint64_t looked_ = 0;
  std::uint64_t enough_ = UINT64_MAX;  ///< a walk that has counted more ends
  std::uint64_t counting_ = 0;
  std::string closing_;   ///< the first that this walk could not list
  unsigned refused_ = 0;  ///< walks in succession with such a one
  std::uint64_t at_start_ = 0;
  std::uint64_t made_ = 0;
  std::string closed_;
};

}  // namespace sbx::supervise
