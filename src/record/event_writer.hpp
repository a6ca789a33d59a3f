#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/events.hpp"
#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "run/launch.hpp"

/// `--events-fd`: one JSON object per line, schema "sbx.events/1", sbx-record(5), "EVENTS".
namespace sbx::record {

/// Writes to a descriptor and never waits for its reader: a line that finds no room is dropped, and the next line says
/// how many were. A reader that left ends nothing. What was told once is not told again.
class EventWriter : public Events {
 public:
  /// `descriptor` is the caller's and stays open; `began` is on CLOCK_MONOTONIC, in microseconds; 0 is now.
  EventWriter(int descriptor, std::uint64_t began);

  void started(const Started& run) override;
  void denied(const Denial& denial) override;
  void limit_met(const LimitMet& met) override;
  void output_cut(const std::string& stream, Bytes limit) override;
  /// The last line. `exit_status` is that of `sbx run`.
  void ended(const run::Answer& answer, int exit_status);

 private:
  void write(Json event);
  [[nodiscard]] bool is_new(std::string what);
  [[nodiscard]] bool send(std::string line);
  [[nodiscard]] bool flush();

  UniqueFd fd_;
  bool is_socket_ = false;
  std::string rest_;  ///< of a line that a stream socket took in part
  std::uint64_t began_;
  std::set<std::string> told_;
  std::uint64_t dropped_ = 0;
};

}  // namespace sbx::record
