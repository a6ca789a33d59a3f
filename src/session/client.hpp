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
#include "session/live_sessions.hpp"

/// A client's side of one request to a session.
namespace sbx::session {

class Client {
 public:
  /// Takes a connected socket.
  explicit Client(UniqueFd socket) : socket_(std::move(socket)) {}
  /// Errors: usage (no such session), host.
  [[nodiscard]] static Result<Client> connect(const host::Host& host, const std::string& name);
  [[nodiscard]] static Result<Client> connect(const LiveSession& session);

  /// Errors: those of the session, host "session-gone".
  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask(const Asked& request,
                                                   std::span<const int> fds = {}) {
    SBX_TRY(send(request, fds));
    return answer<typename Asked::Answer>();
  }
  /// Stops the session; its process has ended when this returns.
  [[nodiscard]] Status stop_and_wait();
  /// Like ask(), where the answer must not take long. Errors: host "session-silent" too, after 2 s.
  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask_soon(const Asked& request) {
    SBX_TRY(send(request));
    SBX_TRY(await_answer());
    return answer<typename Asked::Answer>();
  }
  /// Sends a request that more than one packet answers; also what belongs to it and comes later.
  template <HasFields Said>
  [[nodiscard]] Status send(const Said& said, std::span<const int> fds = {}) {
    return protocol::send(socket_.get(), said, fds);
  }
  /// The next packet. Errors: those of the session, host "session-gone".
  template <HasFields Answer>
  [[nodiscard]] Result<Answer> answer() {
    protocol::Packet packet = SBX_TRY(protocol::receive(socket_.get()));
    return protocol::answer_from<Answer>(std::move(packet.body));
  }
  /// Readable when there is another one.
  [[nodiscard]] int fd() const { return socket_.get(); }
  /// True if it is there.
  [[nodiscard]] bool has_more() const;
  /// The same, of a cell. Errors: those of the session too.
  [[nodiscard]] Result<std::variant<protocol::CellEvent, protocol::CellEnded>> next_of_cell();
  /// Another packet. Errors: host "session-gone", "call-lost" (the process that did the work was
  /// killed), internal "bad-message".
  [[nodiscard]] Result<Json> next();
  /// The same, with the descriptors that came with it.
  [[nodiscard]] Result<protocol::Packet> next_packet();
  /// From here on nothing waits: what the session does not take is lost.
  void never_wait() const;
  /// From here on the kernel notes who sends each packet, SO_PASSCRED in unix(7).
  void note_senders() const;
  /// A pidfd of the process that sent the next packet, which is there; invalid where it has ended.
  [[nodiscard]] UniqueFd next_sender() const;

 private:
  [[nodiscard]] Status await_answer() const;
  [[nodiscard]] Error silent() const;
  [[nodiscard]] Error blamed(const Error& error) const;
  [[nodiscard]] UniqueFd peer() const;
  UniqueFd socket_;
};

}  // namespace sbx::session
