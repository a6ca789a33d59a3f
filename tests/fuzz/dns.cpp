// Every message from a sandbox is answered, ignored or refused; no answer exceeds the smallest
// limit, and the name that is compared with the rules is canonical.

#include <algorithm>
#include <span>

#include "fuzz.hpp"
#include "network/dns_message.hpp"
#include "policy/network_names.hpp"
#include "policy/network_rules.hpp"

using namespace sbx;
namespace dns = network::dns;

namespace {

void check_answer(const dns::Query& query, const dns::Answer& answer) {
  const dns::Bytes bytes = dns::write_answer(query, answer);
  must(bytes.size() >= 12 && bytes.size() <= dns::kSmallestLimit);
  must((bytes[0] << 8 | bytes[1]) == query.id && (bytes[2] & 0x80) != 0);
  const auto again = dns::parse_query(bytes);
  must(!again && again.error().answer.empty());
}

void check_message(std::span<const std::uint8_t> message) {
  const auto query = dns::parse_query(message);
  if (!query) {
    must(!query.error().why.empty() && query.error().answer.size() <= dns::kSmallestLimit);
    return;
  }
  must(!query->shown.empty());
  must(std::ranges::all_of(query->shown, [](char c) { return c > ' ' && c < '\x7f'; }));
  if (!query->name.empty()) {
    const auto canonical = policy::canonical_name(query->name);
    must(canonical.has_value() && *canonical == query->name && query->shown == query->name);
  }
  must(query->question.size() >= 5 && query->question.size() <= 255 + 4);
  check_answer(*query, {.rcode = dns::Rcode::no_such_name});
  check_answer(*query, dns::answer_for(*query, policy::Address::v4(198, 18, 0, 1), 60));
  check_answer(*query, dns::answer_for(*query, *policy::parse_v6("2001:db8::1"), 60));
  if (const auto own = dns::own_name(*query)) check_answer(*query, *own);
}

/// The same bytes as a TCP stream, in pieces of the size in the first byte.
void check_stream(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const std::size_t step = bytes[0] % 37 + 1U;
  dns::Stream stream;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    if (!stream.add(bytes.subspan(at, std::min(step, bytes.size() - at)))) return;
    while (const auto message = stream.next()) check_message(*message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  check_message(bytes);
  check_stream(bytes);
  return 0;
}
