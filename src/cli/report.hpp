#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "cli/invocation.hpp"

namespace sbx::cli {

/// Where records go. Made before the run, so that a place that can't be written is known before
/// anything happens.
class ReportTargets {
 public:
  /// Errors: usage (no such directory, not writable, descriptor not open for writing). Creates
  /// nothing.
  [[nodiscard]] static Result<ReportTargets> prepare(const OutputOptions& options);
  [[nodiscard]] static ReportTargets stdout_only(const OutputOptions& options);

  [[nodiscard]] bool any() const {
    return to_stdout_ || descriptor_ >= 0 || !file_name_.empty() || device_.valid();
  }
  /// Whether no place has to wait for its reader to take so many bytes: a pipe that is ready has room
  /// for PIPE_BUF, pipe(7).
  [[nodiscard]] bool take_at_once(std::size_t size) const;
  /// Pipes and sockets, where all records go to such: when their readers have left nobody waits.
  [[nodiscard]] std::vector<int> readers() const;
  /// Writes the record everywhere. Errors: host (disk full, reader gone); every place is tried.
  [[nodiscard]] Status write(std::string_view record) const;

 private:
  Status prepare_file(const std::string& path);
  [[nodiscard]] Status write_file(std::string_view record) const;

  bool to_stdout_ = false;
  int descriptor_ = -1;
  UniqueFd folder_;        ///< of the file: the same directory even if it is moved during the run
  std::string file_name_;  ///< in that directory
  std::string shown_;      ///< as typed, for messages
  UniqueFd device_;        ///< a FIFO, socket or device is written to, never replaced
};

}  // namespace sbx::cli
