#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <utility>

#include "base/sys.hpp"
#include "protocol/packet.hpp"
#include "session/contexts.hpp"

namespace sbx::session {

/// A client of a session, which the test answers with a unit of the session's.
class TestClient {
 public:
  TestClient() {
    auto pair = sys::make_packet_pair();
    EXPECT_TRUE(pair.has_value());
    socket_ = std::move(pair->first);
    other_ = std::move(pair->second);
  }
  /// The session's end of the connection.
  [[nodiscard]] UniqueFd connection() { return std::move(other_); }
  [[nodiscard]] Asker asker() { return {.connection = connection()}; }

  [[nodiscard]] const UniqueFd& socket() const { return socket_; }
  void leave() { socket_.reset(); }
  /// There is an answer, or the session has closed the connection.
  [[nodiscard]] bool has_answer() const {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, 0) == 1;
  }
  [[nodiscard]] Json answer() {
    auto packet = protocol::receive(socket_.get());
    return packet ? std::move(packet->body) : Json("gone");
  }
  /// The code of the error that it is answered with; empty: another answer.
  [[nodiscard]] std::string error() {
    const Json body = answer();
    return body.contains("error") ? body["error"]["code"].get<std::string>() : "";
  }

 private:
  UniqueFd socket_;
  UniqueFd other_;
};

}  // namespace sbx::session
