#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sbx/error.hpp>
#include <sbx/outcome.hpp>

/// The record of a run, sbx-record(5), as types.
namespace sbx {

struct Record {
  std::string id;      ///< of the run
  std::string status;  ///< outcome.status: "exited", "over-budget", "setup-failed"
  bool success = false;
  /// Empty if nothing ran; `error` is the reason. Start-up stages and notes are not in the record
  /// and so not here, nor is Denied::call, which the denials name.
  std::optional<Outcome> outcome;
  std::optional<Error> error;  ///< code, message and hint
};

/// Empty for text that is not a record of schema "sbx.run/1". A record is untrusted input: a field
/// that is missing or of another type keeps its default.
[[nodiscard]] std::optional<Record> read_record(std::string_view json);

}  // namespace sbx
