#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "session/remains.hpp"

namespace sbx::session {

/// What a session that no command has stopped tells the next command that names it: why it ended,
/// and what became of its changes.
class EndNote {
 public:
  /// Its reason; the first counts. `has_expired`: at its idle time or lifetime.
  void begin(std::string cause, bool has_expired);
  /// The connection of the process that keeps the changes: this note gets its answer.
  [[nodiscard]] Result<UniqueFd> expect_answer();
  /// Reads that answer, as far as it has come. Nothing where no command needs to hear of the end.
  /// `has_overlay`: the workspace has changes that can be kept.
  [[nodiscard]] std::optional<Remains> take(bool has_overlay) const;

 private:
  std::string cause_;
  bool has_expired_ = false;
  UniqueFd answer_;
};

}  // namespace sbx::session
