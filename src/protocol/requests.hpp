#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/result.hpp"

/// What a client asks a session for: one struct for each operation, whose packet has the
/// operation's name as "op". A new field is a line in its struct, and its name in SBX_FIELDS. The
/// operations that carry a program or descriptors (call, eval, changes) are read by who does them.
namespace sbx::protocol {

/// A longer name is that of nothing; the session says which characters a name has.
using Name = AtMost<std::string, 4096>;

struct InfoRequest {
  static constexpr const char* kOp = "info";
};
SBX_NO_FIELDS(InfoRequest)

/// The session's policy as TOML.
struct PolicyRequest {
  static constexpr const char* kOp = "policy";
};
SBX_NO_FIELDS(PolicyRequest)

struct StatsRequest {
  static constexpr const char* kOp = "stats";
};
SBX_NO_FIELDS(StatsRequest)

/// The answer comes once everything in the session has ended.
struct StopRequest {
  static constexpr const char* kOp = "stop";
};
SBX_NO_FIELDS(StopRequest)

/// The session lives for this long from now on.
struct ExtendRequest {
  static constexpr const char* kOp = "extend";
  std::uint64_t milliseconds = 0;
};
SBX_FIELDS(ExtendRequest, milliseconds)

struct CallsRequest {
  static constexpr const char* kOp = "calls";
};
SBX_NO_FIELDS(CallsRequest)

/// What a background call wrote after these many bytes. A follower's answer comes when there is
/// more, or nothing more comes.
struct LogsRequest {
  static constexpr const char* kOp = "logs";
  std::uint64_t call = 0;
  bool follow = false;
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};
SBX_FIELDS(LogsRequest, call, follow, out, err)

/// The answer comes when the call has ended.
struct WaitRequest {
  static constexpr const char* kOp = "wait";
  std::uint64_t call = 0;
  bool record = false;  ///< the client wants it, which only a background call has
};
SBX_FIELDS(WaitRequest, call, record)

/// Without a signal it cancels the call.
struct KillRequest {
  static constexpr const char* kOp = "kill";
  std::uint64_t call = 0;
  std::optional<std::uint8_t> signal;
};
SBX_FIELDS(KillRequest, call, signal)

struct ContextsRequest {
  static constexpr const char* kOp = "contexts";
};
SBX_NO_FIELDS(ContextsRequest)

struct InterruptRequest {
  static constexpr const char* kOp = "interrupt";
  Name context;
};
SBX_FIELDS(InterruptRequest, context)

/// The answer comes when the context has ended.
struct RestartRequest {
  static constexpr const char* kOp = "restart";
  Name context;
};
SBX_FIELDS(RestartRequest, context)

using Request = std::variant<InfoRequest, PolicyRequest, StatsRequest, StopRequest, ExtendRequest,
                             CallsRequest, LogsRequest, WaitRequest, KillRequest, ContextsRequest,
                             InterruptRequest, RestartRequest>;

template <class Value>
concept IsRequest = HasFields<Value> && requires { Value::kOp; };

/// The body of its packet.
template <IsRequest Asked>
[[nodiscard]] Json body_of(const Asked& request) {
  Json body{{"op", Asked::kOp}};
  body.update(write_fields(request));
  return body;
}

/// Errors: usage "bad-message", for another operation, or naming the member that is wrong.
[[nodiscard]] Result<Request> request_from(Json body);

}  // namespace sbx::protocol
