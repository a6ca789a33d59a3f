#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "session/drivers.hpp"

namespace sbx::session {

/// A client's question about code that does not run yet: is it complete, and how can its last word
/// go on. Not a cell: it is not counted and has no outcome. The driver's answer is untrusted, and a
/// person's editor shows it: what can't be part of a line of text is left out.
class Inspection {
 public:
  /// `fds`: the client's connection. Errors: internal "bad-message".
  [[nodiscard]] static Result<Inspection> receive(protocol::InspectRequest request,
                                                  std::vector<UniqueFd> fds);
  [[nodiscard]] bool is_for_driver() const {
    return request_.question != protocol::Question::context;
  }
  /// The request to the driver.
  [[nodiscard]] std::string begin(const Driver& driver);
  /// False where the message is something else.
  [[nodiscard]] bool take(const Json& message);
  /// Tells the client what is known, once.
  void answer(const std::string& language, const std::string& context, std::uint64_t count);
  /// That there is no interpreter to ask.
  void answer(const Error& error);

 private:
  Inspection() = default;
  void take_matches(const Json& message);

  UniqueFd client_;
  protocol::InspectRequest request_;
  std::string nonce_;
  protocol::InspectAnswer said_;
};

}  // namespace sbx::session
