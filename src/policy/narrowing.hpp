#pragma once

#include "policy/context.hpp"
#include "policy/keys.hpp"

namespace sbx::policy {

/// What a locked policy was when it was sealed.
struct Seal {
  Policy policy;
  Origin place;  ///< of `locked = true`
};

/// Where `now` allows more than the sealed policy, or changes what has no order: one finding for
/// each place. What is gone has no place of its own, so `layer` stands for it.
[[nodiscard]] Findings widenings(const Seal& seal, const Policy& now, const Origin& layer);

}  // namespace sbx::policy
