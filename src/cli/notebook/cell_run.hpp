#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sbx/error.hpp>
#include "base/json.hpp"
#include "base/progress.hpp"
#include "cli/invocation.hpp"
#include "cli/notebook/outputs.hpp"
#include "host/host.hpp"
#include "protocol/requests.hpp"

namespace sbx::cli {

struct EndedCell {
  Json record = Json::object();      ///< sbx.cell/1; empty if there is none
  int status = 0;                    ///< as of `session eval`
  std::vector<std::string> notes{};  ///< sentences for a person
  std::optional<Error> error{};      ///< it did not run, or nobody knows how it ended
  NotebookOutputs outputs;
  int cancelled_by = 0;              ///< the signal that was passed on to it
  std::optional<Error> unwritten{};  ///< of stdout or stderr
};

/// Where a cell runs, and who may end it.
struct CellPlace {
  const host::Host& host;
  const std::string& session;
  int signals;    ///< a signalfd: what arrives there cancels the cell
  bool captures;  ///< the record holds the streams, and nothing is printed
  Progress& progress;
  std::string words;  ///< of the progress: "cell 2 of 9"
};

/// Runs one cell as a client of the session: `session eval` with its outputs in their order.
/// `count` is its number there.
[[nodiscard]] EndedCell run_notebook_cell(const Invocation& typed, const CellPlace& place,
                                          const protocol::EvalRequest& request,
                                          std::uint64_t count);

}  // namespace sbx::cli
