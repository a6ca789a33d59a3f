#include "session/interpreter_start.hpp"

#include <utility>

namespace sbx::session {

Result<InterpreterStart> prepare_interpreter(const ContextOfWorker& context, uid_t owner) {
  const Driver* const driver = SBX_TRY(find_driver(context.language));
  InterpreterStart start{.driver = *driver,
                         .channel = SBX_TRY(DriverChannel::make(owner)),
                         .text = SBX_TRY(file_of(*driver))};
  start.descriptors = start.channel.driver_ends();
  if (start.text.valid()) start.descriptors.push_back(start.text.get());
  start.request.program.language = context.language;
  start.request.program.operands = arguments_of(*driver);
  start.request.program.directory = context.directory;
  start.request.program.stdin_mode = plan::StdinMode::null;
  start.request.capture = true;  // two pipes, whatever this process has as its own
  return start;
}

}  // namespace sbx::session
