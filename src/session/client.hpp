#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"
#include "protocol/requests.hpp"
#include "session/session_directory.hpp"

/// A client's side of one request to a session.
namespace sbx::session {

struct CallAnswer {
  int status = 0;      ///< as of `sbx run`
  std::string record;  ///< where it was asked for
};

class Client {
 public:
  /// Takes a connected socket.
  explicit Client(UniqueFd socket) : socket_(std::move(socket)) {}
  /// Errors: usage (no such session), host.
  [[nodiscard]] static Result<Client> connect(const host::Host& host, const std::string& name);
  [[nodiscard]] static Result<Client> connect(const LiveSession& session);

  /// Errors: those of the session, host "session-gone".
  [[nodiscard]] Result<Json> ask(const Json& request, std::span<const int> fds = {});
  /// The same, and the session's process has ended when it returns: for `stop`.
  [[nodiscard]] Status stop_and_wait(const Json& request);
  /// The same where the answer must not take long. Errors: host "session-silent" too, after 2 s.
  [[nodiscard]] Result<Json> ask_soon(const Json& request);
  /// Starts a call and waits for its end. Signals to this process go to the call: it is cancelled
  /// as a run is, or stopped and continued. `parent`: a pidfd of whoever started this process,
  /// whose end cancels the call; -1: nobody's does. Errors: those of the session, host "call-lost"
  /// (the call's worker was killed).
  [[nodiscard]] Result<CallAnswer> call(const Json& request, std::span<const int> fds,
                                        int parent = -1);
  /// Both halves, for a client that feeds the call meanwhile. A signal that ends this process ends
  /// the call.
  [[nodiscard]] Status begin_call(const Json& request, std::span<const int> fds);
  [[nodiscard]] Result<CallAnswer> end_call();
  /// Sends a request that more than one packet answers; also what belongs to it and comes later.
  [[nodiscard]] Status send(const Json& words, std::span<const int> fds = {});
  template <HasFields Said>
  [[nodiscard]] Status send(const Said& said, std::span<const int> fds = {}) {
    return protocol::send(socket_.get(), said, fds);
  }
  /// Readable when there is another one.
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// True if it is there.
  [[nodiscard]] bool has_more() const;
  /// The same, of a cell. Errors: those of the session too.
  [[nodiscard]] Result<std::variant<protocol::CellEvent, protocol::CellEnded>> next_of_cell();
  /// Errors: as call().
  [[nodiscard]] Result<Json> next();
  /// The same with what else the session says where it answers with an error, which is then a
  /// member "error".
  [[nodiscard]] Result<Json> next_whole();
  /// Like call(), for work whose answer is JSON instead of a record: reading changes.
  [[nodiscard]] Result<Json> ask_worker(const Json& request, std::span<const int> fds,
                                        int parent = -1);
  /// From here on nothing waits: what the session does not take is lost.
  void never_wait() const;
  /// From here on the kernel notes who sends each packet, SO_PASSCRED in unix(7).
  void note_senders() const;
  /// A pidfd of the process that sent the next packet, which is there; invalid where it has ended.
  [[nodiscard]] UniqueFd next_sender() const;

 private:
  Result<Json> answer();
  [[nodiscard]] Error silent() const;
  [[nodiscard]] Error blamed(const Error& error) const;
  [[nodiscard]] UniqueFd peer() const;
  UniqueFd socket_;
};

}  // namespace sbx::session
