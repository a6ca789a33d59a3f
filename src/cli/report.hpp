#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "cli/invocation.hpp"

namespace sbx::cli {

/// The destinations of the record. Prepared before the run, so that an unwritable one is reported
/// before anything happens.
class ReportTargets {
 public:
  /// Errors: usage (no such directory, not writable, descriptor not open for writing). Creates
  /// nothing.
  [[nodiscard]] static Result<ReportTargets> prepare(const OutputOptions& options);
  [[nodiscard]] static ReportTargets stdout_only(const OutputOptions& options);

  [[nodiscard]] bool any() const {
    return to_stdout_ || descriptor_ >= 0 || !file_name_.empty() || device_.valid();
  }
  /// True if every destination can take that many bytes without waiting for its reader: a pipe that
  /// is ready has room for PIPE_BUF, pipe(7).
  [[nodiscard]] bool take_at_once(std::size_t size) const;
  /// The pipes and sockets, if all destinations are such: when all their readers have left, nobody
  /// waits for the record.
  [[nodiscard]] std::vector<int> readers() const;
  /// Writes the record to every destination, even after an error. Errors: host (disk full, reader
  /// gone).
  [[nodiscard]] Status write(std::string_view record) const;

 private:
  Status prepare_file(const std::string& path);
  [[nodiscard]] Status write_file(std::string_view record) const;

  bool to_stdout_ = false;
  int descriptor_ = -1;
  UniqueFd directory_;  ///< the file's directory: the same one even if it is moved during the run
  std::string file_name_;  ///< in that directory
  std::string shown_;      ///< as typed, for messages
  UniqueFd device_;        ///< a FIFO, socket or device; written to, never replaced
};

}  // namespace sbx::cli
