#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "run/launch.hpp"
#include "session/driver_channel.hpp"
#include "session/drivers.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {

/// What the start of a context's interpreter needs.
struct InterpreterStart {
  const Driver& driver;
  DriverChannel channel;
  UniqueFd text;                 ///< of the driver; invalid where its arguments have it
  std::vector<int> descriptors;  ///< those that the interpreter inherits
  run::Request request;
};

/// `owner`: who may open the channel, the uid of the program. Errors: usage (the language has no
/// driver), host.
[[nodiscard]] Result<InterpreterStart> prepare_interpreter(const ContextOfWorker& context,
                                                           uid_t owner);

}  // namespace sbx::session
