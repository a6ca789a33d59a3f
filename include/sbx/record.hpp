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
  /// Nothing when nothing ran; `error` says why then. Not in the record, and so not here: stages of the start and notes.
  std::optional<Outcome> outcome;
  std::optional<Error> error;  ///< code, message and hint
};

/// Nothing for a text that is no record of schema "sbx.run/1". A field that is missing or has another type is left at
/// its default: a record is read as a stranger's text.
[[nodiscard]] std::optional<Record> read_record(std::string_view json);

}  // namespace sbx
