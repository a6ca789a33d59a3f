#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>
#include <sbx/units.hpp>

namespace sbx {

/// A run whose command begins now.
struct Started {
  std::string id;
  std::string policy;  ///< its name
  std::vector<std::string> command;
};

/// Hears what happens in a run while it goes on (--events-fd). What happens again is told again: the listener decides
/// what is new to it. Called from the supervisor's loop: a listener never waits.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  virtual ~Events() = default;

  virtual void started(const Started& run) = 0;
  virtual void denied(const Denial& denial) = 0;
  /// `met` as it is known by then: its peak may still grow.
  virtual void limit_met(const LimitMet& met) = 0;
  /// More was written to this stream than is kept or passed on.
  virtual void output_cut(const std::string& stream, Bytes limit) = 0;
};

}  // namespace sbx
