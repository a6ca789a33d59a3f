#pragma once

#include <span>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"
#include "session/session_directory.hpp"

/// A client's side of one request to a session.
namespace sbx::session {

struct CallAnswer {
  int status = 0;      ///< as of `sbx run`
  std::string record;  ///< where it was asked for
};

class Client {
 public:
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
  /// Readable when there is another one.
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// True if it is there.
  [[nodiscard]] bool has_more() const;
  /// Errors: as call().
  [[nodiscard]] Result<Json> next();
  /// The same with what else the session says where it answers with an error, which is then a
  /// member "error".
  [[nodiscard]] Result<Json> next_whole();
  /// Like call(), for work whose answer is JSON instead of a record: reading changes.
  [[nodiscard]] Result<Json> ask_worker(const Json& request, std::span<const int> fds,
                                        int parent = -1);

 private:
  explicit Client(UniqueFd socket) : socket_(std::move(socket)) {}
  Result<Json> answer();
  [[nodiscard]] Error silent() const;
  [[nodiscard]] Error blamed(const Error& error) const;
  [[nodiscard]] UniqueFd peer() const;
  UniqueFd socket_;
};

}  // namespace sbx::session
