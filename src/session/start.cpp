#include "session/start.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "base/event_loop.hpp"
#include "base/process.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "host/host.hpp"
#include "policy/write.hpp"
#include "protocol/answers.hpp"
#include "run/held_sandbox.hpp"
#include "run/session_directory.hpp"
#include "session/session.hpp"
#include "session/session_directory.hpp"
#include "session/session_name.hpp"
#include "session/snapshot_store.hpp"
#include "session/worker_process.hpp"

namespace sbx::session {
namespace {

void leave_terminal() {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (null.valid()) (void)::dup2(null.get(), fd);
  (void)!::chdir("/");  // the starter's directory can be unmounted
}

int serve(const std::string& name, const run::Request& request, const run::Sinks& sinks,
          const Tell& tell, UniqueFd ready, UniqueFd owner, std::string keep_as) {
  const auto refuse = [&](const policy::Findings& findings) {
    tell(findings);
    (void)protocol::send(ready.get(), findings.front());
    return exit_status_of(findings.front());
  };
  const auto host = host::probe();
  if (!host) return refuse({host.error()});
  auto place = SessionDirectory::make(*host, name);
  if (!place) return refuse({place.error()});
  run::note_session_directory(*host);
  std::string policy_sha256;
  const auto meanwhile = [&](const policy::Policy& policy, const std::string& state_directory) {
    policy_sha256 = sha256_hex(policy::write_for_hash(policy));
    sweep_snapshots(state_directory);
  };
  auto held = run::HeldSandbox::start(request, sinks, meanwhile);
  if (!held) return refuse(held.error());
  auto loop = EventLoop::make();
  if (!loop) return refuse({loop.error()});
  auto session = std::make_unique<Session>(std::move(*place), std::move(*held),
                                           std::move(policy_sha256), std::move(*loop));
  if (const Status begun = session->begin(std::move(owner), std::move(keep_as)); !begun)
    return refuse({begun.error()});
  leave_terminal();
  (void)protocol::send(ready.get(), session->info());
  ready.reset();
  session->run();
  return 0;
}

/// The signal that came before the session had said anything; 0 if it has said something.
int cancelled_by(int ready, const signals::Held& signals) {
  for (;;) {
    std::array<pollfd, 2> sources{{{.fd = ready, .events = POLLIN, .revents = 0},
                                   {.fd = signals.fd(), .events = POLLIN, .revents = 0}}};
    if (::poll(sources.data(), sources.size(), -1) < 0) continue;
    if (const int signal = signals.next(); signal != 0) return signal;
    if (sources[0].revents != 0) return 0;
  }
}

/// Ends a session's process that is starting, or has just started.
void end_start(pid_t pid) {
  constexpr std::chrono::seconds kEndsWithin{5};  // as a session that is stopped
  const UniqueFd process = process::open(pid);
  (void)::kill(pid, SIGTERM);
  if (!process::has_ended(process.get(), kEndsWithin)) (void)::kill(pid, SIGKILL);
  process::wait_for(pid);
}

/// What a command answers that waits for the start.
StartAnswer take_answer(const Starting& starting, const signals::Held& signals, const Tell& tell) {
  if (const int signal = cancelled_by(starting.answer.get(), signals); signal != 0) {
    end_start(starting.process.pid);
    return {.status = exit_status_of(Cancelled{signal})};
  }
  auto facts = facts_from_start(starting);
  if (facts) return {.facts = std::move(*facts)};
  const int status = process::wait_for(starting.process.pid);
  // One that was killed has told nobody.
  if (facts.error().code == "session-gone") tell({facts.error()});
  return {.status = WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status)
                                                                  : exit_status::kCouldNot,
          .error = std::move(facts).error()};
}

}  // namespace

Result<Starting> fork_session(std::string name, run::Request request, run::Sinks sinks, Tell tell,
                              const std::function<void()>& before) {
  if (name.empty()) name = make_name();
  SBX_TRY(check_name(name));
  auto pair = SBX_TRY(sys::make_packet_pair());
  process::Child child = SBX_TRY(process::fork([&] {
    before();
    pair.first.reset();
    (void)::setsid();
    UniqueFd owner(std::exchange(request.parent, -1));
    process::keep_only({pair.second.get(), owner.get()});  // nothing of its starter's
    // A run that keeps its changes also makes the workspace copy-on-write; a session does not.
    std::string keep_as = std::exchange(request.bring_out.keep, {});
    return serve(name, request, sinks, tell, std::move(pair.second), std::move(owner),
                 std::move(keep_as));
  }));
  return Starting{.process = std::move(child), .answer = std::move(pair.first)};
}

Result<protocol::SessionFacts> facts_from_start(const Starting& starting) {
  auto answer = protocol::receive(starting.answer.get());
  if (answer) return protocol::answer_from<protocol::SessionFacts>(std::move(answer->body));
  return fail(Error{.kind = ErrorKind::internal,
                    .code = "session-gone",
                    .message = "the session's process was killed"});
}

StartAnswer start(std::string name, run::Request request, const run::Sinks& sinks,
                  const Tell& tell) {
  // A signal that ended this process now would leave a session of which nobody knows.
  const signals::Held signals;
  const auto starting = fork_session(std::move(name), std::move(request), sinks, tell,
                                     [&] { signals.let_through(); });
  if (starting) return take_answer(*starting, signals, tell);
  tell({starting.error()});
  return {.status = exit_status_of(starting.error()), .error = starting.error()};
}

}  // namespace sbx::session
