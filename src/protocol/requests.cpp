#include "protocol/requests.hpp"

#include <cstddef>
#include <utility>

#include "base/text.hpp"
#include "protocol/packet.hpp"

namespace sbx::protocol {
namespace {

template <std::size_t kAt = 0>
Result<Request> read_as(const std::string& op, Json body) {
  if constexpr (kAt == std::variant_size_v<Request>) {
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-message",
                      .message = "the session does not know the request \"" + printable(op) + "\"",
                      .hint = kOtherVersion});
  } else {
    using Asked = std::variant_alternative_t<kAt, Request>;
    if (op != Asked::kOp) return read_as<kAt + 1>(op, std::move(body));
    auto request = read_fields<Asked>(
        std::move(body), {.kind = ErrorKind::usage, .subject = "the request to the session"});
    if (request) return Request(std::move(*request));
    request.error().hint = kOtherVersion;
    return fail(std::move(request).error());
  }
}

}  // namespace

Result<Request> request_from(Json body) {
  const auto op = body.find("op");
  const bool has_op = op != body.end() && op->is_string();
  const std::string name = has_op ? op->get<std::string>() : std::string();
  return read_as(name, std::move(body));
}

}  // namespace sbx::protocol
