#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "cli/answer.hpp"
#include "cli/invocation.hpp"
#include "cli/reader_shown.hpp"
#include "host/host.hpp"
#include "protocol/requests.hpp"
#include "session/client.hpp"

namespace sbx::cli {

/// What the commands of sessions share: the session that is meant, its requests, and the form of an
/// answer.
struct SessionAsker {
  const Invocation& typed;
  const host::Host& host;
  std::vector<std::string> operands;  ///< the first one names a session

  /// A person reads nothing but errors.
  [[nodiscard]] bool is_silent() const { return typed.output.json || typed.output.quiet; }
  /// Errors: usage.
  [[nodiscard]] Status most(std::size_t count) const;
  /// The second operand. Errors: usage.
  [[nodiscard]] Result<std::uint64_t> call_number() const;

  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask(const Asked& request) const {
    session::Client client = SBX_TRY(session::Client::connect(host, operands.front()));
    return client.ask(request);
  }
  /// The same of a request that reads changes, and whose client may cancel it.
  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask_reader(const Asked& request) const {
    return ask_reader(request, operands.front());
  }
  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask_reader(const Asked& request,
                                                          const std::string& session) const {
    return read_changes(SBX_TRY(session::Client::connect(host, session)), request, is_silent());
  }

  /// Keeps the session's changes as this set. Errors: those of the session.
  [[nodiscard]] Result<protocol::BroughtOutAnswer> keep_as(const std::string& set) const;

  /// The answer of a command that prints nothing else.
  [[nodiscard]] int answered(const Json& body, int status = kDone) const;
  template <HasFields Document>
  [[nodiscard]] int answered(const Document& document, int status = kDone) const {
    return answered(write_fields(document, Form::document), status);
  }
  /// Tells that a part failed; the command goes on.
  int tell(const Error& error) const;
};

/// The session has ended.
[[nodiscard]] bool is_gone(const Error& error);

}  // namespace sbx::cli
