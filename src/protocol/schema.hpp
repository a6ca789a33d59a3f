#pragma once

#include <string_view>
#include <vector>

#include "base/json.hpp"

/// The packets of requests.hpp and answers.hpp, for whoever writes a client: sbx-packet(5).
namespace sbx::protocol {

/// One operation. The names are those of definitions in packet_schema(); empty: it has none.
struct Operation {
  std::string_view op;
  std::string_view meaning;
  std::string_view descriptors;  ///< those that come with the request
  std::string_view request;
  std::string_view begun;  ///< the first packet to its client
  std::string_view event;  ///< any number of these follows
  std::string_view answer;
  std::string_view later;  ///< what its client may send meanwhile
};
[[nodiscard]] std::vector<Operation> operations();

/// JSON Schema (draft 2020-12) of each packet: schema/sbx.packet.2.json.
[[nodiscard]] Json packet_schema();

}  // namespace sbx::protocol
