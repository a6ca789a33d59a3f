#pragma once

#include <string>
#include <utility>

#include "base/json.hpp"
#include "base/person.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::agent {

/// What the operator reads later: a line of JSON for each call, without what programs have written.
class Log {
 public:
  /// Appends to a file that only the user can read; an empty path: nothing is written. `person`
  /// is told where it can't be written any more. Errors: host.
  [[nodiscard]] static Result<Log> open(const std::string& path, const Person& person);

  /// `arguments`: null where it is the end of a job.
  void write(const std::string& what, const Json* arguments, const Json& result);
  /// What was told to the operator.
  void note(const std::string& words);

 private:
  Log(UniqueFd file, Person person) : file_(std::move(file)), person_(std::move(person)) {}
  void append(const Json& line);

  UniqueFd file_;
  Person person_;
};

}  // namespace sbx::agent
