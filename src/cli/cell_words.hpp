#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/tell.hpp"
#include "base/unique_fd.hpp"
#include "protocol/cell_record.hpp"

/// What `session eval` and `run --cells` have in common: a cell's answer in words, and the signals
/// that end them.
namespace sbx::cli {

/// Takes the signals that end this process, except ignored ones: the cell is told first. Errors:
/// internal.
[[nodiscard]] Result<UniqueFd> take_ending_signals();

/// `data` is a value's data, by media type.
[[nodiscard]] bool has_picture(const protocol::Forms& data);
/// Prints a value of a cell's answer, and what was left out of it. `cure`: the end of the sentence
/// about a picture that is saved nowhere; empty: nothing is said. False where stdout can't be
/// written.
[[nodiscard]] bool show_result(const protocol::CellResult& result, bool quiet,
                               const std::string& cure);
/// The traceback of an error.
void tell_error(const protocol::CellError& error, const Paint& paint);
/// What need not be said: at a prompt it was said before, or is what the person has just done.
struct AlreadySaid {
  bool lost_state = false;
  bool interrupts = false;
};
/// Who can allow more: the options of this command, or those with which its session is started.
struct Remedies {
  bool of_budget = false;   ///< this command's own options set the budget
  bool of_session = false;  ///< and its session
};
/// "over-budget: the sentence"; empty: the cell answered.
[[nodiscard]] std::string end_words(const Json& record);
/// "NameError: name 'x' is not defined"; empty: the cell raised nothing.
[[nodiscard]] std::string error_words(const Json& record);
/// What the policy refused to the cell, and what was written before it and belongs to no cell.
void tell_denials(const Json& record, Remedies cures, const Paint& paint);
/// What a cell that failed may have met. `notes`: those of its end.
void tell_hints(const Json& record, const std::vector<std::string>& notes, Remedies cures);
/// What would have let it go on.
void tell_cure(const Json& record, Remedies cures);
/// All of these, and what became of the context's state.
void tell_outcome(const Json& record, const std::vector<std::string>& notes, AlreadySaid known,
                  Remedies cures, const Paint& paint);

}  // namespace sbx::cli
