#pragma once

#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::agent {

/// What the operator reads later: a line of JSON for each call, without what programs have written.
class Log {
 public:
  /// Appends to a file that only the user can read; an empty path: nothing is written. Errors:
  /// host.
  [[nodiscard]] static Result<Log> open(const std::string& path);

  /// `arguments`: null where it is the end of a job.
  void write(const std::string& what, const Json* arguments, const Json& result);
  /// What was told to the operator.
  void note(const std::string& words);

 private:
  explicit Log(UniqueFd file) : file_(std::move(file)) {}
  void append(const Json& line);

  UniqueFd file_;
};

}  // namespace sbx::agent
