#pragma once

#include <set>

#include "base/events.hpp"
#include "base/tell.hpp"

namespace sbx::cli {

/// Tells a person at a terminal the first refusal of each kind when it happens: a program that
/// tries again for a minute would hide the reason until its end. Passes every event on.
class LiveDenials : public Events {
 public:
  /// `next` is borrowed and may be null.
  LiveDenials(Events* next, const Paint& paint) : next_(next), paint_(paint) {}

  void started(const Started& run) override;
  void denied(const Denial& denial) override;
  void limit_met(const LimitMet& met) override;
  void output_cut(const std::string& stream, Bytes limit) override;

 private:
  Events* next_;
  Paint paint_;
  std::set<DenialKind> told_;
};

}  // namespace sbx::cli
