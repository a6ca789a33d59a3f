// The verdict on the first bytes of a connection is final unless it is "more", however they are
// split.

#include <algorithm>
#include <span>

#include "fuzz.hpp"
#include "network/sni.hpp"
#include "policy/network_names.hpp"
#include "policy/network_rules.hpp"

using namespace sbx;
using State = network::ClientHello::State;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  const auto whole = network::read_client_hello(bytes);
  must((whole.state == State::named) == !whole.name.empty());
  if (!whole.name.empty()) {
    const auto canonical = policy::canonical_name(whole.name);
    must(canonical.has_value() && *canonical == whole.name);
  }
  if (size >= network::kLargestHello) must(whole.state != State::more);
  const std::size_t step =
      size == 0 ? 1 : std::max<std::size_t>(size / 16, data[size - 1] % 8 + 1U);
  for (std::size_t length = 0; length < size; length += step) {
    const auto part = network::read_client_hello(bytes.first(length));
    must(part.state == State::more || (part.state == whole.state && part.name == whole.name));
  }
  return 0;
}
