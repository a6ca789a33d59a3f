#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>
#include <sbx/units.hpp>

namespace sbx {

/// A run, when its command begins.
struct Started {
  std::string id;
  std::string policy;  ///< its name
  std::vector<std::string> command;
};

/// Receives the events of a run while it goes on (--events-fd). A repeated event is reported again:
/// the receiver decides whether it is new. Called from the supervisor's loop: a receiver must not
/// block.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  virtual ~Events() = default;

  virtual void started(const Started& run) = 0;
  virtual void denied(const Denial& denial) = 0;
  /// `met` may be incomplete: its peak may still grow.
  virtual void limit_met(const LimitMet& met) = 0;
  /// More was written to this stream than is kept or passed on.
  virtual void output_cut(const std::string& stream, Bytes limit) = 0;
};

}  // namespace sbx
