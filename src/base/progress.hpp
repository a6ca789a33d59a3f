#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/copied.hpp"
#include "base/sys.hpp"

namespace sbx {

/// One line on a terminal about work that takes longer than a second. A pipe never sees it. Whoever
/// else writes to the terminal clears it first.
class Progress {
 public:
  using Clock = std::function<std::uint64_t()>;  ///< microseconds

  /// Shows nothing where `descriptor` is not a terminal, or `quiet`.
  Progress(int descriptor, bool quiet, Clock now = sys::now_microseconds);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  [[nodiscard]] bool is_shown() const { return is_shown_; }
  /// The work begins, or its next part.
  void begin();
  /// "sbx: WORDS, 12 s", once a second has passed; at most ten times a second.
  void tick(const std::string& words);
  /// Takes the line away, for other output. `in_line`: that does not end with a line feed, and
  /// nothing is shown until other output does.
  void clear(bool in_line = false);

 private:
  void write(const std::string& text) const;

  int descriptor_;
  bool is_shown_;
  Clock now_;
  std::uint64_t began_ = 0;
  std::uint64_t painted_ = 0;  ///< 0: no line is there
  bool in_line_ = false;
};

/// Shows copies as "12 MB copied", each piece of work after a second of its own. `progress` is
/// borrowed.
[[nodiscard]] Copied copies_shown_by(Progress& progress);

}  // namespace sbx
