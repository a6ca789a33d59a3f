#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "session/drivers.hpp"

namespace sbx::session {

/// A client's question about code that does not run yet: is it complete, and how can its last word
/// go on. Not a cell: it is not counted and has no outcome. The driver's answer is untrusted, and a
/// person's editor shows it: what can't be part of a line of text is left out.
class Inspection {
 public:
  /// `request`: "inspect" names the question, "completeness", "completion" or none (only the
  /// context is meant), and "code" has the text up to the cursor. `fds`: the client's connection.
  /// Errors: internal "bad-message".
  [[nodiscard]] static Result<Inspection> receive(const Json& request, std::vector<UniqueFd> fds);
  [[nodiscard]] bool is_for_driver() const {
    return what_ == "completeness" || what_ == "completion";
  }
  /// The request to the driver.
  [[nodiscard]] std::string begin(const Driver& driver);
  /// False where the message is something else.
  [[nodiscard]] bool take(const Json& message);
  /// Tells the client what is known, once: `facts` and, where the driver has answered, "status"
  /// (complete, incomplete or invalid) and "indent", or "replaces" (the end of the code) and
  /// "matches" (what can stand for it and begins with it).
  void answer(Json facts);
  /// That there is no interpreter to ask.
  void answer(const Error& error);

 private:
  Inspection() = default;
  void take_matches(const Json& message);

  UniqueFd client_;
  std::string what_;
  std::string code_;
  std::string nonce_;
  Json said_ = Json::object();
};

}  // namespace sbx::session
