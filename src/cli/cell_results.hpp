#pragma once

#include <string>

#include "base/result.hpp"
#include "changes/bring_out.hpp"
#include "protocol/cell_record.hpp"

namespace sbx::cli {

/// `--results DIR`: the values of a cell that are more than plain text, as files.
class CellResults {
 public:
  /// Makes the directory where there is none. Errors: usage "out-unusable" (a symbolic link too).
  [[nodiscard]] static Result<CellResults> open(const std::string& directory);

  /// Writes the values of a record and names their files in it. Never over a file that is there,
  /// and 1,000 files at most. Errors: host (some are not written).
  Status save(protocol::CellRecord& record, bool pictures_only = false) const;

 private:
  CellResults(std::string name, workspace::OutDirectory directory)
      : name_(std::move(name)), directory_(std::move(directory)) {}
  [[nodiscard]] Result<std::string> write(const std::string& name, const std::string& ending,
                                          const std::string& bytes) const;

  std::string name_;
  workspace::OutDirectory directory_;
};

}  // namespace sbx::cli
