#pragma once

#include <cstdint>

/// Addresses of the pair of interfaces between a sandbox and its gateway. They are seen inside the
/// run's own two namespaces only: every run has the same.
namespace sbx {

// The last network of 198.18.0.0/15 (RFC 2544, benchmarks): no host uses it.
inline constexpr const char* kGateway4 = "198.19.255.1";
inline constexpr const char* kSandbox4 = "198.19.255.2";
inline constexpr unsigned kLinkPrefix4 = 30;
// fc00::/7 (RFC 4193).
inline constexpr const char* kGateway6 = "fd53:6278::1";
inline constexpr const char* kSandbox6 = "fd53:6278::2";
inline constexpr unsigned kLinkPrefix6 = 64;

inline constexpr std::uint16_t kDnsPort = 53;

}  // namespace sbx
