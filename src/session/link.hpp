#pragma once

#include <cstdint>

#include "base/unique_fd.hpp"
#include "policy/addresses.hpp"

/// Between the session's process and the worker of one call, which it forked: packets over two socket pairs. On `link`
/// each side sends what happens; on `ask` the worker asks and waits for the answer.
namespace sbx::session {

struct Note {
  enum class What : std::uint32_t {
    // the worker's
    began,     ///< `value`: the pid of the call's init
    ended,     ///< `value`: the exit status; with a file in memory: the record
    ready,     ///< of a context: it has something to remember
    answered,  ///< of a context: one more cell
    // the session's
    spend,   ///< `value`: a Budget that the whole session has spent
    signal,  ///< `value`: for the main process
    cancel,  ///< as after SIGTERM to sbx
    // the session's, to a context
    cell,  ///< with the request in a file in memory, the client's connection and its descriptors
    interrupt,  ///< the cell that runs
    end,        ///< it is no longer wanted
  };
  What what;
  std::int32_t value;
};

struct Question {
  enum class What : std::uint32_t {
    expect,   ///< open this place for a rule with many ports; answered with the same bytes
    refused,  ///< what the network refused since the call began; answered by message.hpp
  };
  What what;
  policy::Address address{};
  std::uint16_t port = 0;
};

}  // namespace sbx::session
