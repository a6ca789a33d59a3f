#include "policy/network_rules.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/letters.hpp"
#include "base/network_addresses.hpp"
#include "policy/network_names.hpp"
#include "policy/network_parts.hpp"
#include "policy/special_ranges.hpp"
#include "policy/syntax.hpp"

namespace sbx::policy {
namespace {

constexpr std::string_view kForms =
    "write HOST:PORT, as \"api.example.com:443\", \"10.1.0.0/16:5432\" or \"[2001:db8::/32]:443\"";
constexpr std::uint16_t kDefaultPort = 443;
constexpr unsigned kLastPort = 65535;

std::unexpected<Problem> bad(std::string message, std::string hint = std::string(kForms)) {
  return std::unexpected(Problem{"bad-destination", std::move(message), std::move(hint)});
}

std::string write_text(const std::string& rule) {
  return "write " + quoted(rule);
}

// --- ports

/// Decimal without a leading zero.
std::optional<unsigned> number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = !text.empty() && error == std::errc{} && end == text.data() + text.size();
  if (!whole || !is_digit(text.front()) || (text.size() > 1 && text.front() == '0') || value > most)
    return std::nullopt;
  return value;
}

std::string ports_text(const std::vector<PortRange>& ports) {
  std::string text;
  for (const PortRange& range : ports) {
    text += (text.empty() ? "" : ",") + std::to_string(range.first);
    if (range.last != range.first) text += "-" + std::to_string(range.last);
  }
  return text;
}

const std::vector<PortRange>& every_port() {
  static const std::vector<PortRange> all = {{1, kDnsPort - 1}, {kDnsPort + 1, kLastPort}};
  return all;
}

std::vector<PortRange> without_dns(const std::vector<PortRange>& ports) {
  std::vector<PortRange> result;
  for (const PortRange& range : ports) {
    if (range.last < kDnsPort || range.first > kDnsPort) {
      result.push_back(range);
      continue;
    }
    if (range.first < kDnsPort) result.push_back({range.first, kDnsPort - 1});
    if (range.last > kDnsPort) result.push_back({kDnsPort + 1, range.last});
  }
  return result;
}

Checked<PortRange> parse_range(std::string_view text) {
  constexpr std::string_view kPorts = "ports are \"443\", \"8000-8100\", \"80,443\" or \"*\"";
  const auto dash = text.find('-');
  const auto first = number(text.substr(0, dash), kLastPort);
  const auto last =
      dash == std::string_view::npos ? first : number(text.substr(dash + 1), kLastPort);
  if (!first || !last || *first == 0 || *last == 0)
    return bad(quoted(text) + " is not a port number (1 to 65535)", std::string(kPorts));
  if (*first > *last) {
    return bad("the range " + quoted(text) + " ends before it begins",
               write_text(std::to_string(*last) + "-" + std::to_string(*first)));
  }
  return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

Checked<std::vector<PortRange>> parse_ports(std::string_view text) {
  if (text == "*") return every_port();
  std::vector<PortRange> ports;
  for (const std::string_view part : every_part(text, ',')) {
    auto range = parse_range(part);
    if (!range) return std::unexpected(std::move(range).error());
    ports.push_back(*range);
  }
  ports = merged(std::move(ports));
  if (const auto rest = without_dns(ports); rest != ports) {
    return bad(quoted(text) + " has port 53, which sbx itself answers",
               rest.empty() ? "leave it out: allowed names resolve without a rule"
                            : "write the ports " + quoted(ports_text(rest)));
  }
  return ports;
}

// --- the parts of a rule

struct Parts {
  Transport transport = Transport::tcp;
  std::string_view scheme;  ///< with "://", as written
  std::string_view host;    ///< without brackets
  std::string_view ports;
  bool bracketed = false;
};

/// What a URL probably meant: its host and the port of its scheme.
std::string meant_by_url(std::string_view scheme, std::string_view rest) {
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) rest.remove_prefix(at + 1);
  const bool has_port = rest.rfind(':') != std::string_view::npos && !rest.ends_with(']');
  std::string text(rest);
  if (!has_port) text += scheme == "http" || scheme == "ws" ? ":80" : ":443";
  return text;
}

std::optional<Problem> split_scheme(std::string_view text, std::string_view& rest, Parts& parts) {
  rest = text;
  const auto end = text.find("://");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view scheme = text.substr(0, end);
  rest = text.substr(end + 3);
  parts.scheme = text.substr(0, end + 3);
  if (scheme == "tcp") return std::nullopt;
  parts.transport = Transport::udp;
  if (scheme == "udp") return std::nullopt;
  const std::string meant = meant_by_url(scheme, rest);
  return Problem{"bad-destination", quoted(text) + " is a URL, not a destination",
                 meant.starts_with(':')
                     ? std::string(kForms)
                     : write_text(meant) + "; the schemes are tcp:// and udp://"};
}

/// What can't stand in any rule, by its first byte.
std::optional<Problem> stray(std::string_view text, std::string_view rest) {
  const auto problem = [&](std::string what, std::string hint) {
    return Problem{"bad-destination", quoted(text) + std::move(what), std::move(hint)};
  };
  if (text.find('\0') != std::string_view::npos)
    return problem(" has a NUL in it", "programs would read only what is before it");
  const auto blank = std::ranges::find_if(
      text, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; });
  if (blank != text.end()) return problem(" has a blank in it", std::string(kForms));
  if (const auto at = rest.rfind('@'); at != std::string_view::npos)
    return problem(" has a user name in it", write_text(std::string(rest.substr(at + 1))));
  if (rest.find('%') != std::string_view::npos)
    return problem(" has a % in it", "addresses have no zone here, and names no escapes");
  if (rest.find_first_of("?#\\") != std::string_view::npos)
    return problem(" has more than a host and ports", std::string(kForms));
  return std::nullopt;
}

Checked<Parts> split_unbracketed(std::string_view text, std::string_view rest, Parts parts) {
  const auto colon = rest.find(':');
  parts.host = rest.substr(0, colon);
  if (colon == std::string_view::npos) {
    return bad(quoted(text) + " has no port",
               rest.empty() ? std::string(kForms)
                            : "write the port too: " + quoted(std::string(text) + ":443"));
  }
  parts.ports = rest.substr(colon + 1);
  if (parts.ports.find(':') != std::string_view::npos) {
    return bad(quoted(text) + " has more than one colon",
               "an IPv6 address stands in brackets: \"[2001:db8::1]:443\"");
  }
  if (parts.ports.find('/') != std::string_view::npos) {
    return bad(quoted(text) + " has a path in it",
               write_text(std::string(text.substr(0, text.rfind('/')))));
  }
  return parts;
}

Checked<Parts> split_bracketed(std::string_view text, std::string_view rest, Parts parts) {
  const auto end = rest.find(']');
  if (end == std::string_view::npos) return bad(quoted(text) + " has no closing bracket");
  parts.bracketed = true;
  parts.host = rest.substr(1, end - 1);
  parts.ports = rest.substr(end + 1);
  if (parts.ports.starts_with('/')) {
    return bad(quoted(text) + " has its prefix length outside of the brackets",
               "write it within: \"[2001:db8::/32]:443\"");
  }
  if (!parts.ports.starts_with(':')) {
    return bad(quoted(text) + " has no port",
               "write the port too: " +
                   quoted(std::string(parts.scheme) + "[" + std::string(parts.host) + "]:443"));
  }
  parts.ports.remove_prefix(1);
  return parts;
}

Checked<Parts> split_rule(std::string_view text) {
  constexpr std::size_t kLongest = 2048;
  if (text.size() > kLongest)
    return bad("a destination of " + std::to_string(text.size()) + " bytes");
  Parts parts;
  std::string_view rest;
  auto wrong = split_scheme(text, rest, parts);
  if (auto worse = stray(text, rest); worse && !wrong) wrong = std::move(worse);
  if (wrong) return std::unexpected(std::move(*wrong));
  return rest.starts_with('[') ? split_bracketed(text, rest, parts)
                               : split_unbracketed(text, rest, parts);
}

// --- hosts

std::string with_host(const Parts& parts, const std::string& host) {
  const bool colons = host.find(':') != std::string::npos;
  return std::string(parts.scheme) + (colons ? "[" + host + "]" : host) + ":" +
         std::string(parts.ports);
}

/// Refuses a rule with addresses that no rule can reach: it would have no effect.
Checked<void> check_reachable(const Parts& parts, const NetworkRule& rule) {
  const SpecialRange* range = special_range(rule.prefix);
  if (rule.exact) range = special_range(rule.prefix.address);
  const std::string shown = quoted(std::string(parts.host));
  if (range == nullptr) return {};
  if (range->special == Special::never)
    return bad(shown + " is " + std::string(range->reason), "nothing leads there: leave it out");
  if (range->special != Special::exact) return {};
  const bool loopback =
      range->prefix.contains(Address::v4(127, 0, 0, 1)) || range->prefix.contains(*parse_v6("::1"));
  if (rule.exact && loopback && range->prefix.contains(rule.prefix.address))
    return bad(shown + " is the sandbox's own loopback, which no rule leads out of",
               "for the host's loopback write " +
                   quoted(with_host(parts, std::string(kHostLoopbackName))));
  if (rule.exact) return {};
  return bad(shown + " is " + std::string(range->reason) + ", which only a single address reaches",
             loopback ? write_text(with_host(parts, std::string(kHostLoopbackName)))
                      : write_text(with_host(parts, rule.prefix.address.text())));
}

Checked<void> parse_prefix(const Parts& parts, NetworkRule& rule) {
  const auto slash = parts.host.find('/');
  const std::string_view text = parts.host.substr(0, slash);
  const auto address = parts.bracketed ? parse_v6(text) : parse_v4(text);
  if (!address) {
    if (!parts.bracketed && slash != std::string_view::npos &&
        text.find_first_not_of("0123456789.") != std::string_view::npos)
      return bad(quoted(parts.host) + " has a path in it",
                 write_text(std::string(text) + ":" + std::string(parts.ports)));
    return bad(quoted(text) + " is not an address",
               parts.bracketed ? "brackets hold an IPv6 address, as \"[2001:db8::1]:443\""
                               : "write four decimal numbers without leading zeros: \"192.0.2.1\"");
  }
  rule.kind = NetworkRule::Kind::prefix;
  rule.exact = slash == std::string_view::npos;
  rule.prefix = {.address = *address, .length = address->bits()};
  if (!rule.exact) {
    const std::string_view length = parts.host.substr(slash + 1);
    const auto bits = number(length, address->bits());
    if (!bits) {
      return bad(quoted("/" + std::string(length)) + " is not a prefix length from 0 to " +
                     std::to_string(address->bits()),
                 "a prefix is written as " +
                     quoted(parts.bracketed ? "[2001:db8::/32]:443" : "10.0.0.0/8:443"));
    }
    rule.prefix.length = *bits;
  }
  const Address first = masked(*address, rule.prefix.length);
  if (first != *address) {
    const std::string prefix = Prefix{first, rule.prefix.length}.text();
    return bad(quoted(parts.host) + " has bits set after its prefix",
               write_text(with_host(parts, prefix)) + " for the prefix, or " +
                   quoted(with_host(parts, address->text())) + " for the one address");
  }
  const Prefix mapped{.address = *parse_v6("::ffff:0:0"), .length = 96};
  if (mapped.contains(rule.prefix)) {
    const unsigned length = rule.prefix.length - mapped.length;
    const Address v4 = *embedded_v4(*address);
    return bad(quoted(parts.host) + " is an IPv4 address written as IPv6",
               write_text(with_host(parts, rule.exact ? v4.text() : Prefix{v4, length}.text())));
  }
  return check_reachable(parts, rule);
}

Checked<void> parse_name(const Parts& parts, NetworkRule& rule) {
  const bool wildcard = parts.host.starts_with("*.");
  if (parts.host == "*") {
    return bad("\"*\" names every host",
               "name the hosts, as \"*.example.org:443\"; \"0.0.0.0/0:443\" is every address");
  }
  auto name = canonical_name(parts.host.substr(wildcard ? 2 : 0));
  if (!name) {
    if (name.error().message.find(" has a * within") == std::string::npos)
      return std::unexpected(std::move(name).error());
    return bad(quoted(parts.host) + " has a * where none can stand",
               "a * stands alone before the first dot: \"*.example.org:443\"");
  }
  rule.name = std::move(*name);
  rule.kind = wildcard ? NetworkRule::Kind::wildcard : NetworkRule::Kind::name;
  if (!is_own_name(rule.name)) return {};
  if (rule.name == kHostLoopbackName && !wildcard) {
    rule.kind = NetworkRule::Kind::host;
    return {};
  }
  return bad(
      quoted(parts.host) + (is_at_or_below(rule.name, "localhost")
                                ? " is the sandbox's own loopback, which needs no rule"
                                : " is a name of sbx's own"),
      write_text(with_host(parts, std::string(kHostLoopbackName))) + " for the host's loopback");
}

/// An address, or what was meant as one: it is read as an address by no means or by the right one.
bool looks_like_address(const Parts& parts) {
  if (parts.bracketed || parts.host.find('/') != std::string_view::npos) return true;
  return parse_v4(parts.host).has_value();
}

}  // namespace

std::string NetworkRule::text() const {
  std::string text = transport == Transport::udp ? "udp://" : "";
  if (kind == Kind::prefix) {
    const std::string inner = exact ? prefix.address.text() : prefix.text();
    text += prefix.address.family == Family::v6 ? "[" + inner + "]" : inner;
  } else {
    text += (kind == Kind::wildcard ? "*." : "") + name;
  }
  return text + ":" + (ports == every_port() ? "*" : ports_text(ports));
}

bool NetworkRule::has_port(std::uint16_t port) const {
  return std::ranges::any_of(
      ports, [&](const PortRange& range) { return range.first <= port && port <= range.last; });
}

std::size_t NetworkRule::port_count() const {
  std::size_t count = 0;
  for (const PortRange& range : ports) count += range.last - range.first + 1U;
  return count;
}

bool NetworkRule::has_name(std::string_view canonical) const {
  switch (kind) {
    case Kind::name:
    case Kind::host:
      return canonical == name;
    case Kind::wildcard:
      return canonical != name && is_at_or_below(canonical, name) && !is_own_name(canonical);
    case Kind::prefix:
      break;
  }
  return false;
}

Checked<NetworkRule> parse_network_rule(std::string_view text) {
  const auto parts = split_rule(text);
  if (!parts) return std::unexpected(parts.error());
  NetworkRule rule{.transport = parts->transport};
  if (parts->host.empty()) return bad(quoted(text) + " names no host");
  auto host = looks_like_address(*parts) ? parse_prefix(*parts, rule) : parse_name(*parts, rule);
  if (!host) return std::unexpected(std::move(host).error());
  auto ports = parse_ports(parts->ports);
  if (!ports) return std::unexpected(std::move(ports).error());
  rule.ports = std::move(*ports);
  return rule;
}

std::string with_default_port(std::string_view text) {
  const bool has_scheme = text.find("://") != std::string_view::npos;
  const bool has_port = text.find(':') != std::string_view::npos && !text.ends_with(']');
  if (text.empty() || has_scheme || has_port) return std::string(text);
  return std::string(text) + ":" + std::to_string(kDefaultPort);
}

// --- publications

std::string Publication::text() const {
  const std::string host = address.text();
  return (address.family == Family::v6 ? "[" + host + "]" : host) + ":" +
         std::to_string(host_port) + ":" + std::to_string(port);
}

Checked<Publication> parse_publication(std::string_view text) {
  const auto wrong = [&](std::string what) {
    return std::unexpected(Problem{"bad-publication", quoted(text) + std::move(what),
                                   "write \"127.0.0.1:HOST_PORT:PORT\", as \"127.0.0.1:8080:80\""});
  };
  Publication result{.address = Address::v4(127, 0, 0, 1)};
  const auto second = text.rfind(':');
  if (second == std::string_view::npos || second == 0)
    return wrong(" does not publish a port on the host's loopback");
  const auto first = text.rfind(':', second - 1);
  const bool has_address = first != std::string_view::npos;
  const std::size_t begin = has_address ? first + 1 : 0;
  const auto host_port = number(text.substr(begin, second - begin), kLastPort);
  const auto port = number(text.substr(second + 1), kLastPort);
  if (!host_port || !port || *host_port == 0 || *port == 0)
    return wrong(" does not name two ports from 1 to 65535");
  result.host_port = static_cast<std::uint16_t>(*host_port);
  result.port = static_cast<std::uint16_t>(*port);
  if (!has_address) return result;
  std::string_view host = text.substr(0, first);
  const bool bracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  const auto address = bracketed ? parse_v6(host.substr(1, host.size() - 2)) : parse_v4(host);
  if (!address) return wrong(" does not publish a port on the host's loopback");
  const bool loopback =
      address->family == Family::v4 ? address->bytes[0] == 127 : *address == *parse_v6("::1");
  if (!loopback) return wrong(" publishes to more than the host's loopback");
  result.address = *address;
  return result;
}

}  // namespace sbx::policy
