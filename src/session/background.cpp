#include "session/background.hpp"

#include <fcntl.h>

#include <memory>
#include <utility>

#include "base/sys.hpp"
#include "session/call_input.hpp"

namespace sbx::session {

Status open_streams(Call& call, std::vector<UniqueFd>& fds, const protocol::CallRequest& request,
                    Background background) {
  sys::Pipe out = SBX_TRY(sys::make_pipe());
  sys::Pipe err = SBX_TRY(sys::make_pipe());
  UniqueFd in;
  if (request.open_stdin) {
    auto pair = SBX_TRY(sys::make_stream_pair());
    in = std::move(pair.first);
    call.input = std::make_unique<CallInput>(background.loop, call.number, std::move(pair.second),
                                             std::move(background.used));
  } else if (request.reads_stdin && !fds.empty()) {
    in = std::move(fds.front());
  } else {
    in = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  }
  call.output = std::make_unique<CallOutput>(background.loop, background.log_bytes,
                                             std::move(background.output));
  SBX_TRY(call.output->begin(std::move(out.read), std::move(err.read)));
  std::vector<UniqueFd> streams;
  streams.push_back(std::move(in));
  streams.push_back(std::move(out.write));
  streams.push_back(std::move(err.write));
  for (std::size_t i = 3; i < fds.size(); ++i) streams.push_back(std::move(fds[i]));
  fds = std::move(streams);
  return {};
}

}  // namespace sbx::session
