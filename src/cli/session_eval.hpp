#pragma once

#include <cstdint>
#include <string>

#include "cli/cell_words.hpp"
#include "cli/invocation.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// How a cell went for its client, who has been told.
struct CellRun {
  int status = 0;
  std::string error;        ///< code of the error that kept it from running, or from being answered
  int signal = 0;           ///< the last one that this process got meanwhile
  std::uint64_t count = 0;  ///< the cell's number; 0: unknown
  bool lost_state = false;  ///< that was said
  bool is_unwritten = false;   ///< a part of what it printed is lost
  bool ended_context = false;  ///< with this cell: the next one is the first of another interpreter
};

/// `sbx session eval`: one cell, from what was typed to its exit status.
[[nodiscard]] CellRun run_cell(const Invocation& typed, const host::Host& host,
                               AlreadySaid known = {});

/// Handles an invalid command line: reports the error on stderr and, if `typed` still requests one,
/// in a record. The exit status is 125: 2 would be the cell's.
[[nodiscard]] int refuse_cell(const Invocation& typed, const Error& error);

}  // namespace sbx::cli
