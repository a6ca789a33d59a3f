#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "session/call_output.hpp"
#include "session/calls.hpp"

namespace sbx::session {

/// What a background call has of its session instead of a client.
struct Background {
  EventLoop& loop;
  std::uint64_t log_bytes = 0;  ///< that are kept of each stream
  std::function<void()> used;   ///< somebody wrote to its input
  CallOutput::Hooks output;
};

/// Replaces the client's streams in `fds`: the session reads what the call writes. Its client ends,
/// so of its streams only a standard input that was named stays. Errors: host, internal.
[[nodiscard]] Status open_streams(Call& call, std::vector<UniqueFd>& fds,
                                  const protocol::CallRequest& request, Background background);

}  // namespace sbx::session
