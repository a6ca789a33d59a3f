#include "session/start.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "base/event_loop.hpp"
#include "base/sys.hpp"
#include "host/host.hpp"
#include "run/held_sandbox.hpp"
#include "session/message.hpp"
#include "session/place.hpp"
#include "session/session.hpp"
#include "session/worker_process.hpp"

namespace sbx::session {
namespace {

void leave_terminal() {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (null.valid()) (void)::dup2(null.get(), fd);
  (void)!::chdir("/");  // the starter's directory can be unmounted
}

using Tell = std::function<void(const policy::Findings&)>;

int serve(const std::string& name, const run::Request& request, const run::Sinks& sinks,
          const Tell& tell, UniqueFd ready, UniqueFd owner) {
  const auto refuse = [&](const policy::Findings& findings) {
    tell(findings);
    (void)send(ready.get(), {{"error", error_json(findings.front())}});
    return exit_status_of(findings.front());
  };
  const auto host = host::probe();
  if (!host) return refuse({host.error()});
  auto place = Place::make(*host, name);
  if (!place) return refuse({place.error()});
  auto held = run::HeldSandbox::start(request, sinks);
  if (!held) return refuse(held.error());
  auto loop = EventLoop::make();
  if (!loop) return refuse({loop.error()});
  auto session = std::make_unique<Session>(std::move(*place), std::move(*held), std::move(*loop));
  if (const Status begun = session->begin(std::move(owner)); !begun) return refuse({begun.error()});
  leave_terminal();
  (void)send(ready.get(), session->info());
  ready.reset();
  session->run();
  return 0;
}

/// What the session's process `pid` says once it takes calls, or when it can't.
StartAnswer take_answer(int ready, pid_t pid, const Tell& tell) {
  auto answer = receive(ready);
  StartAnswer started;
  if (answer && !answer->body.contains("error")) {
    started.facts = std::move(answer->body);
    return started;
  }
  if (answer) started.error = error_from(answer->body["error"]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  started.status =
      WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : exit_status::kCouldNot;
  if (started.error) return started;
  started.error = Error{.kind = ErrorKind::internal,
                        .code = "session-gone",
                        .message = "the session's process was killed"};
  tell({*started.error});
  return started;
}

}  // namespace

StartAnswer start(std::string name, run::Request request, const run::Sinks& sinks,
                  const Tell& tell) {
  if (name.empty()) name = make_name();
  if (const Status right = check_name(name); !right) {
    tell({right.error()});
    return {.status = exit_status_of(right.error()), .error = right.error()};
  }
  auto pair = sys::make_packet_pair();
  const pid_t pid = pair ? ::fork() : -1;
  if (pid < 0) {
    const Error error = pair ? Error{.kind = ErrorKind::host,
                                     .code = "cannot-clone",
                                     .message = "cannot start a process",
                                     .errno_value = errno}
                             : pair.error();
    tell({error});
    return {.status = exit_status::kCouldNot, .error = error};
  }
  if (pid == 0) {
    pair->first.reset();
    (void)::setsid();
    UniqueFd owner(std::exchange(request.parent, -1));
    keep_only({pair->second.get(), owner.get()});  // nothing of its starter's
    const int status = serve(name, request, sinks, tell, std::move(pair->second), std::move(owner));
    ::_exit(status);
  }
  pair->second.reset();
  return take_answer(pair->first.get(), pid, tell);
}

}  // namespace sbx::session
