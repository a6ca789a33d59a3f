#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/network_match.hpp"
#include "policy/network_rules.hpp"

namespace sbx::network {

/// A name that the program has resolved, and the address that stands for it.
struct Name {
  std::string name;  ///< canonical
  policy::Address address;
  /// Those that allow it, TCP and UDP, in the order of the policy.
  std::vector<const policy::PlacedRule*> rules;
};

/// Names and their synthetic addresses (198.18.0.0/16): each is given once in a run, so that a
/// connection to the address is a connection to the name.
class Names {
 public:
  static constexpr std::size_t kMost = 65'000;

  /// The rules are borrowed.
  explicit Names(const std::vector<policy::PlacedRule>& rules) : rules_(rules) {}

  /// The allowed name, given an address when it is new; null for one that no rule has.
  [[nodiscard]] const Name* allow(std::string_view canonical);
  /// Whether the last allow() found a rule but no address left.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  /// The name that an address stands for, or null.
  [[nodiscard]] const Name* at(const policy::Address& address) const;

 private:
  const std::vector<policy::PlacedRule>& rules_;
  std::vector<std::unique_ptr<Name>> names_;  ///< the n-th has the n-th address
  std::unordered_map<std::string, std::size_t> index_;
  bool exhausted_ = false;
};

/// Whether an address is one of those that stand for names, or of the link to the gateway.
[[nodiscard]] bool is_synthetic(const policy::Address& address);

}  // namespace sbx::network
