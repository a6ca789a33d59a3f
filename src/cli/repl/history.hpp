#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// The cells that a person has typed in one language: a file in the state directory with a JSON
/// text a line, so that cells of several lines survive. Several prompts may add to it.
class History {
 public:
  /// Reads what there is. Errors: host (there is no place for it).
  [[nodiscard]] static Result<History> open(const host::Host& host, const std::string& language);

  /// Oldest first.
  [[nodiscard]] const std::vector<std::string>& cells() const { return cells_; }
  Status add(const std::string& cell);

  static constexpr std::size_t kMost = 10'000;  ///< cells that are kept

 private:
  History(UniqueFd directory, std::string file)
      : directory_(std::move(directory)), file_(std::move(file)) {}
  Status load();
  void shorten() const;

  UniqueFd directory_;
  std::string file_;
  std::vector<std::string> cells_;
};

}  // namespace sbx::cli
