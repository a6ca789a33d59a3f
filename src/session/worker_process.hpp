#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <string_view>

#include <sbx/outcome.hpp>

#include "base/unique_fd.hpp"
#include "policy/addresses.hpp"
#include "run/call.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {

/// A worker's side of link.hpp.
class ToSession {
 public:
  ToSession(const UniqueFd& link, const UniqueFd& ask) : link_(link), ask_(ask) {}

  void note(Note::What what, std::int32_t value = 0) const;
  /// With texts, each in a file in memory.
  void note(Note::What what, std::int32_t value,
            std::initializer_list<std::string_view> texts) const;
  /// Returns when the session has opened the place.
  void expect(const policy::Address& address, std::uint16_t port) const;
  /// What happened in the network since the call began, or since the last time.
  [[nodiscard]] run::NetworkTrouble trouble() const;
  /// Who has most processes: a context, or another call.
  [[nodiscard]] run::MostProcesses most_processes() const;

 private:
  const UniqueFd& link_;
  const UniqueFd& ask_;
};

}  // namespace sbx::session
