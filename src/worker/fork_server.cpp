#include "worker/fork_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <span>

#include "base/message.hpp"
#include "base/process.hpp"
#include "base/sys.hpp"
#include "record/record.hpp"
#include "run/run.hpp"
#include "worker/message.hpp"
#include "worker/process_setup.hpp"

namespace sbx::worker {
namespace {

/// -c CODE and lists of variables: several times what an exec would accept.
constexpr std::size_t kLargestRequest = std::size_t{64} << 20;
constexpr std::size_t kLargestRecord = std::size_t{1} << 30;

/// The descriptors sent with a request, in this order.
enum Descriptor : std::size_t { kRequest, kIn, kOut, kErr, kClient, kDescriptors };

Error gone(const char* what) {
  return {.kind = ErrorKind::internal, .code = "worker-lost", .message = what};
}

bool is_cancelled(int client) {
  pollfd wait{.fd = client, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) > 0;
}

// --- The worker

run::Answer cancelled_before_start() {
  run::Answer answer;
  answer.outcome = run::cancelled_before_start(SIGTERM);
  return answer;
}

run::Answer answer_to(const Result<run::Request>& request, int client, ArgumentArea arguments) {
  if (!request) return {.errors = {request.error()}};
  if (is_cancelled(client)) return cancelled_before_start();
  run::Request own = *request;
  own.cancel = client;
  own.arguments = arguments;
  own.started_microseconds = sys::now_microseconds();
  return run::launch(own, {.silent = true});
}

/// Sends the exit status in the packet and the record in a memfd.
void reply(int client, const run::Request& request, const run::Answer& answer) {
  const int status = run::exit_status_of(answer);
  const auto record = sys::in_memory(record::record_text(request, answer));
  if (!record) return;  // no reply: the worker counts as lost
  const std::array descriptors{record->get()};
  (void)sys::send_message(client, std::as_bytes(std::span(&status, 1)), descriptors);
}

/// The streams become the worker's descriptors 0 to 2, which launch() uses.
bool take_streams(std::vector<UniqueFd>& sent) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    UniqueFd& stream = sent[kIn + static_cast<std::size_t>(fd)];
    if (::dup2(stream.get(), fd) < 0) return false;
    stream = UniqueFd();
  }
  return true;
}

[[noreturn]] void work(std::vector<UniqueFd> sent, ArgumentArea arguments) {
  (void)std::signal(SIGCHLD, SIG_DFL);
  if (!take_streams(sent)) ::_exit(exit_status::kCouldNot);
  const auto bytes = sys::read_all(sent[kRequest].get(), kLargestRequest);
  const auto request =
      bytes ? unpack(*bytes) : Result<run::Request>(std::unexpected(bytes.error()));
  const int client = sent[kClient].get();
  const run::Answer answer = answer_to(request, client, arguments);
  reply(client, request ? *request : run::Request{}, answer);
  ::_exit(0);
}

// --- The server

[[noreturn]] void serve(int socket, ArgumentArea arguments) {
  (void)std::signal(SIGCHLD, SIG_IGN);  // workers are not waited for: their sockets report the end
  for (;;) {
    std::byte byte{};
    sys::Message message = sys::receive_message(socket, std::span(&byte, 1));
    if (message.length == 0) ::_exit(0);  // the front end is gone
    if (message.fds.size() != kDescriptors) continue;
    const pid_t worker = ::fork();
    if (worker == 0) {
      ::close(socket);
      work(std::move(message.fds), arguments);
    }
    // If the fork failed, the client sees its socket closed.
    if (worker > 0) (void)::send(message.fds[kClient].get(), &worker, sizeof worker, MSG_NOSIGNAL);
  }
}

}  // namespace

Result<ForkServer> ForkServer::start(ArgumentArea arguments) {
  auto pair = SBX_TRY(sys::make_packet_pair());
  (void)SBX_TRY(process::fork([&]() -> int {
    // Signals from the terminal go to the front end, which cancels workers if it wants to.
    (void)::setsid();
    process::keep_only({pair.second.get()});
    if (!fill_standard_descriptors()) return exit_status::kCouldNot;
    take_errors_for_signals();
    raise_descriptor_limit();
    serve(pair.second.get(), arguments);
  }));
  return ForkServer(std::move(pair.first));
}

Result<Worker> ForkServer::launch(run::Request request, Streams streams) const {
  auto variables = SBX_TRY(run::read_variables(request.variables));
  for (auto& each : variables) request.program.environment.push_back(std::move(each));
  const UniqueFd bytes = SBX_TRY(sys::in_memory(pack(request)));
  auto pair = SBX_TRY(sys::make_packet_pair());
  const std::array<int, kDescriptors> descriptors{bytes.get(), streams.in.get(), streams.out.get(),
                                                  streams.err.get(), pair.second.get()};
  const std::byte byte{};
  if (!sys::send_message(socket_.get(), std::span(&byte, 1), descriptors))
    return fail(gone("the fork server is gone"));
  pair.second.reset();
  pid_t pid = 0;
  const sys::Message begun =
      sys::receive_message(pair.first.get(), std::as_writable_bytes(std::span(&pid, 1)));
  if (begun.length != sizeof pid) return fail(gone("the fork server can't fork, or is gone"));
  return Worker(std::move(pair.first), pid);
}

void Worker::cancel() const {
  // The end of file says it: nobody has to read a byte.
  (void)::shutdown(socket_.get(), SHUT_WR);
}

Result<Finished> Worker::wait() const {
  Finished finished;
  const sys::Message message = sys::receive_message(
      socket_.get(), std::as_writable_bytes(std::span(&finished.exit_status, 1)));
  if (message.length != sizeof finished.exit_status || message.fds.size() != 1)
    return fail(gone("the worker was killed before it could report"));
  finished.record = SBX_TRY(sys::read_all(message.fds.front().get(), kLargestRecord));
  return finished;
}

}  // namespace sbx::worker
