#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/events.hpp"
#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "run/launch.hpp"

/// `--events-fd`: one JSON object per line, schema "sbx.events/1", sbx-record(5), "EVENTS".
namespace sbx::record {

/// Writes to a descriptor and never waits for its reader: a line that doesn't fit is dropped, and
/// the next line gives the number dropped. A reader that leaves doesn't end the run. Nothing is
/// reported twice. Where a line can't be written for any other reason, a full disk say, none
/// follows: failure().
class EventWriter : public Events {
 public:
  /// `descriptor` belongs to the caller and stays open; `began` is in microseconds on
  /// CLOCK_MONOTONIC; 0 means now.
  EventWriter(int descriptor, std::uint64_t began);

  void started(const Started& run) override;
  void denied(const Denial& denial) override;
  void limit_met(const LimitMet& met) override;
  void output_cut(const std::string& stream, Bytes limit) override;
  /// The last line. `exit_status` is that of `sbx run`.
  void ended(const run::Answer& answer, int exit_status);
  /// Why lines are lost that had room and a reader.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  void write(Json event);
  [[nodiscard]] bool is_new(std::string what);
  [[nodiscard]] bool send(std::string line);
  [[nodiscard]] bool flush();
  void note_failure(int error);

  UniqueFd fd_;
  bool is_socket_ = false;
  std::string rest_;  ///< the rest of a line that a stream socket accepted in part
  std::uint64_t began_;
  std::set<std::string> told_;
  std::uint64_t dropped_ = 0;
  std::optional<Error> failure_;
};

}  // namespace sbx::record
