#pragma once

#include <string>

#include <sbx/units.hpp>

#include "record/cell.hpp"
#include "run/cell_output.hpp"
#include "run/launch.hpp"
#include "session/open_cell.hpp"

/// Why a cell ended, where its code did not end by itself.
namespace sbx::session {

[[nodiscard]] record::CellEnd end_by_interrupt();
/// `limit` of wall time.
[[nodiscard]] record::CellEnd end_by_time(Milliseconds limit);
[[nodiscard]] record::CellEnd end_by_output(const run::CellOutput::Target& target);
/// The reader of its output has left.
[[nodiscard]] record::CellEnd end_without_reader();

/// As its client asks by `message`, a CancelMessage.
[[nodiscard]] record::CellEnd end_by_client(Json message);
[[nodiscard]] record::CellEnd end_without_client();

/// Why an interpreter had to stop that ran a cell with this end, for whoever finds its state lost.
[[nodiscard]] std::string cause_of(const record::CellEnd& end);

/// Answers a cell that ends with its interpreter. One that waited for the interpreter to start
/// ended by the same cause. `was_ready`: the interpreter had started; `was_lost`: what an earlier
/// one remembered.
void answer_at_end(OpenCell& cell, const run::Answer& answer, bool was_ready, bool was_lost);

}  // namespace sbx::session
