#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/addresses.hpp"
#include "policy/network_parts.hpp"
#include "policy/policy.hpp"
#include "policy/problem.hpp"

/// network.allow and network.publish, read in one place. What is checked here is what is dialled:
/// names have one canonical text, addresses one canonical form.
///
/// A rule is [tcp://|udp://]HOST:PORTS. Without a scheme it is TCP.
///   HOST   a name "api.example.com"; every name below one "*.example.org" (any depth, not
///          example.org itself); an address or prefix "10.1.0.0/16", "[2001:db8::/32]"; the host's
///          loopback "host.sbx.internal".
///   PORTS  "443", a range "8000-8100", a list "80,443,8000-8100", or "*" for all but 53.
namespace sbx::policy {

enum class Transport : std::uint8_t { tcp, udp };

/// The name inside the sandbox of the host's loopback.
inline constexpr std::string_view kHostLoopbackName = "host.sbx.internal";

/// Ports of one rule that are listened on from the start: more would cost each start milliseconds.
inline constexpr std::size_t kMostPortsFromStart = 256;

struct NetworkRule {
  enum class Kind : std::uint8_t {
    name,      ///< one name
    wildcard,  ///< every name below `name`
    prefix,    ///< addresses
    host,      ///< host.sbx.internal
  };

  Transport transport = Transport::tcp;
  Kind kind = Kind::name;
  std::string name;  ///< canonical; of a wildcard without "*."; empty for a prefix
  Prefix prefix;     ///< of kind prefix
  /// A prefix written as one address, without a length. Only such a rule reaches loopback, metadata
  /// services and the host's own addresses: "10.1.2.3/32" does not.
  bool exact = false;
  std::vector<PortRange> ports;  ///< ascending, neither touching nor overlapping; never has 53

  /// The one text of this rule: parse_network_rule(text()) is this rule.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool has_port(std::uint16_t port) const;
  /// How many ports it has, 1 to 65534.
  [[nodiscard]] std::size_t port_count() const;
  /// More ports than the gateway listens on from the start: each is opened when the program calls
  /// connect(2) for it, or sends there.
  [[nodiscard]] bool is_wide() const { return port_count() > kMostPortsFromStart; }
  /// Whether a canonical name is what the rule names. A wildcard never has names of sbx.internal
  /// and localhost.
  [[nodiscard]] bool has_name(std::string_view canonical) const;
  bool operator==(const NetworkRule&) const = default;
};

/// Reads one rule. An error names the wrong part and the line that corrects it.
[[nodiscard]] Checked<NetworkRule> parse_network_rule(std::string_view text);
/// HOST as --allow-host takes it: a rule without a port gets port 443.
[[nodiscard]] std::string with_default_port(std::string_view text);

/// A port of the sandbox on the host's loopback (TCP).
struct Publication {
  Address address;              ///< of the host: 127.0.0.0/8 or ::1
  std::uint16_t host_port = 0;  ///< 1 to 65535
  std::uint16_t port = 0;       ///< inside
  /// "127.0.0.1:8080:80", "[::1]:8080:80".
  [[nodiscard]] std::string text() const;
  bool operator==(const Publication&) const = default;
};
/// Reads "[ADDRESS:]HOST_PORT:PORT"; without ADDRESS it is 127.0.0.1.
[[nodiscard]] Checked<Publication> parse_publication(std::string_view text);

}  // namespace sbx::policy
