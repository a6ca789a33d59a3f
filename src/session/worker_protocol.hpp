#pragma once

#include <csignal>
#include <cstdint>

#include "base/unique_fd.hpp"
#include "policy/addresses.hpp"
#include "protocol/requests.hpp"
#include "run/call.hpp"

namespace sbx::run {

SBX_FIELDS(NetworkTrouble, refused, failed)
SBX_FIELDS(MostProcesses, who, cure, count)

}  // namespace sbx::run

/// Between the session's process and the worker of one call, which it forked: packets over two
/// socket pairs. On `link` each side sends what happens; on `ask` the worker asks and waits for the
/// answer.
namespace sbx::session {

struct Note {
  enum class What : std::uint32_t {
    // the worker's
    began,     ///< `value`: the pid of the call's init
    ended,     ///< `value`: the exit status. A background call adds its record and what is said of
               ///< it, a context its end in words, each in a file in memory
    ready,     ///< of a context: it has something to remember
    answered,  ///< of a context: one more cell
    // the session's, to a worker that waits for a call
    call,  ///< a packet with an Assignment follows; `value`: CallDescriptors
    // the session's
    spend,   ///< `value`: a Budget that the whole session has spent
    signal,  ///< `value`: for the main process
    cancel,  ///< as after SIGTERM to sbx; `value`: an EndCause
    gone,    ///< a spare's: its interpreter is dead. It waits for `claim`, and starts another one
             ///< then
    // the session's, to a spare
    claim,  ///< a packet with a Claim follows: it is a context from here on
    // the session's, to a context
    cell,       ///< a packet with the request, the client's connection and its descriptors follows
    interrupt,  ///< the cell that runs
    end,        ///< it is no longer wanted
  };
  What what;
  std::int32_t value;
};

/// What follows Note::call.
struct Assignment {
  std::uint64_t call = 0;
  protocol::CallRequest request;
};
SBX_FIELDS(Assignment, call, request)

/// What follows Note::claim.
struct Claim {
  std::uint64_t call = 0;
  std::string context;
  bool was_lost = false;
  std::string lost_because;
};
SBX_FIELDS(Claim, call, context, was_lost, lost_because)

/// Who cancelled a call.
enum class EndCause : std::int32_t {
  kill,      ///< `session kill`
  stop,      ///< the session was stopped
  lifetime,  ///< of the session
  owner,     ///< the process for which the session was made has ended
};

/// Signals that a client passes on to its call's worker, over the connection: SignalMessage.
/// Not by kill(2): the worker may have gone on to another call.
inline constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

/// Which descriptors come with a call, after its standard streams and one for events: bits of
/// Note::value.
struct CallDescriptors {
  static constexpr std::int32_t kClient = 1;  ///< the connection; without it: a background call
  static constexpr std::int32_t kImage = 2;   ///< sbx itself, which the call runs
};

struct Question {
  enum class What : std::uint32_t {
    expect,   ///< open this place for a rule with many ports; answered with the same bytes
    trouble,  ///< what the network refused, or did not reach, since the call began; answered by
              ///< run::NetworkTrouble
    most_processes,  ///< whose processes use up limits.processes; answered by
                     ///< run::MostProcesses
  };
  What what;
  policy::Address address{};
  std::uint16_t port = 0;
};

}  // namespace sbx::session
