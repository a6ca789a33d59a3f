#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "policy/network_match.hpp"
#include "policy/network_rules.hpp"
#include "policy/special_ranges.hpp"

/// Which destinations a rule may lead to, and why not.
namespace sbx::network {

/// The addresses of the host's own interfaces, as they are now. Read at connect time: they change.
class HostAddresses {
 public:
  HostAddresses() = default;
  explicit HostAddresses(std::vector<policy::Address> addresses)
      : addresses_(std::move(addresses)) {}
  /// By getifaddrs(3), that is, netlink in the calling process's network namespace. Errors: host.
  [[nodiscard]] static Result<HostAddresses> read();

  [[nodiscard]] bool has(const policy::Address& address) const;

 private:
  std::vector<policy::Address> addresses_;
};

/// Why a destination is refused: "a private address (RFC 1918)". Empty: it is allowed.
struct Refused {
  std::string why;
  /// What would allow it: "network.private = true", "network.allow = [\"10.0.0.1:80\"]"; empty
  /// where nothing does.
  std::string allow_with;
  std::vector<std::string> options{};  ///< of sbx run: the same
};

/// Whether `rule` may lead to `address` (for a prefix rule: that it has the address is checked
/// too). A name that the rule has may have resolved to anything; `private_` is network.private.
[[nodiscard]] std::optional<Refused> refused(const policy::NetworkRule& rule, bool private_,
                                             const policy::Address& address, std::uint16_t port,
                                             const HostAddresses& host);

/// What is left of a lookup's answer. An address that one of `rules` names exactly is left too: the
/// program may connect to it anyway.
struct Usable {
  std::vector<policy::Address> addresses;
  /// When none is left: "leads only to private addresses (10.1.2.3)", "leads only to addresses of
  /// this machine (127.0.0.1)"; with the line that would allow it.
  Refused refused;
};
[[nodiscard]] Usable usable(const policy::NetworkRule& rule, bool private_,
                            const std::vector<policy::Address>& resolved, std::uint16_t port,
                            const HostAddresses& host,
                            std::span<const policy::PlacedRule> rules = {});

}  // namespace sbx::network
