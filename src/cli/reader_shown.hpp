#pragma once

#include <cstdint>
#include <utility>

#include "base/progress.hpp"
#include "cli/forwarding.hpp"
#include "protocol/answers.hpp"

namespace sbx::cli {

/// Shows what a process tells that reads changes: words, and on a terminal how far it is.
class ReaderShown {
 public:
  explicit ReaderShown(bool quiet);
  void show(const protocol::ReaderEvent& event);

 private:
  Progress progress_;
  std::uint64_t copied_ = 0;
};

/// The same of a request that reads changes.
template <protocol::IsRequest Asked>
[[nodiscard]] Result<typename Asked::Answer> read_changes(session::Client connection,
                                                          const Asked& request, bool quiet) {
  if constexpr (protocol::Tells<Asked>) {
    ReaderShown shown(quiet);
    return run_forwarding(std::move(connection), request, {}, -1,
                          [&](const auto& event) { shown.show(event); });
  } else {
    return run_forwarding(std::move(connection), request, {});
  }
}

}  // namespace sbx::cli
