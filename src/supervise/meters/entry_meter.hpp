#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

/// Counts the names that live grants have gained, whoever created them, by walking through them one
/// piece at a time so that the loop isn't blocked. No kernel counter gives the names that one
/// program creates. It misses what was created and removed between two walks. Names suffice, so it
/// opens directories but no files.
class EntryMeter {
 public:
  EntryMeter() = default;
  /// Counts the names in `directories` now, before the command runs. Skips those that can't be
  /// opened.
  explicit EntryMeter(std::vector<std::string> directories);

  [[nodiscard]] bool is_needed() const { return !tops_.empty(); }
  /// Reads some more names; true when a walk is complete and the figures are new. A walk ends early
  /// above `most` new names.
  bool step(std::uint64_t most);
  /// Does a whole walk.
  void walk(std::uint64_t most);
  /// Growth since the start; 0 if there are fewer names.
  [[nodiscard]] std::uint64_t made() const { return made_; }
  /// A directory that several successive walks could not list, and that was readable at the start
  /// or didn't exist then; empty if there is none.
  [[nodiscard]] const std::string& closed() const { return closed_; }
  /// The last walk could not list some directory.
  [[nodiscard]] bool is_doubtful() const { return refused_ > 0; }

 private:
  struct Top {
    UniqueFd directory;
    std::string path;
  };
  struct CountedDirectory {
    std::size_t top = 0;
    std::string path;  ///< relative to it
  };
  void begin(std::uint64_t most);
  void look_into(const CountedDirectory& place);
  void note_closed(const CountedDirectory& place);
  void complete();

  std::vector<Top> tops_;
  std::vector<std::string> closed_at_start_;
  std::vector<CountedDirectory> waiting_;
  bool has_begun_ = false;  ///< the names at the start have been counted
  bool walks_ = false;
  std::uint64_t looked_ = 0;
  std::uint64_t enough_ = UINT64_MAX;  ///< a walk ends when it has counted more
  std::uint64_t counting_ = 0;
  std::string closing_;   ///< the first that the current walk could not list
  unsigned refused_ = 0;  ///< successive walks with such a directory
  std::uint64_t at_start_ = 0;
  std::uint64_t made_ = 0;
  std::string closed_;
};

}  // namespace sbx::supervise
