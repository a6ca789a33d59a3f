#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The runs of one user that are under way. Each run holds a listening socket with an abstract
/// name, unix(7). The kernel removes it when the process ends, however it ends, so nothing stale is
/// left behind. The name contains the id; SO_PEERCRED gives the process and its user, which another
/// user can't forge. Abstract names belong to a network namespace: a run in another one is not
/// seen, and a sandbox with a network namespace of its own sees none.
namespace sbx::run {

struct UnderWay {
  std::string id;          ///< of the record: "r_" and 16 hexadecimal digits
  std::string policy;      ///< its name
  pid_t pid = 0;           ///< of the `sbx run`; 0: in a PID namespace that the caller can't see
  std::int64_t since = 0;  ///< seconds since 1970; 0: unknown
  std::vector<std::string> command;  ///< the command line of sbx
};

/// Lists this process until destroyed. A run that can't be listed continues unlisted.
class Announcement {
 public:
  Announcement(const std::string& id, const std::string& policy);

  /// Accepts and closes connections, to make room for the next ones. Errors: internal.
  [[nodiscard]] Status attach(EventLoop& loop);

 private:
  void let_go(EventLoop& loop);

  UniqueFd socket_;
};

/// The runs of the caller's user, by start time. Errors: host (no /proc).
[[nodiscard]] Result<std::vector<UnderWay>> runs_under_way();

/// Asks a run to end, as SIGTERM does, and waits for its process. Errors: host "not-ended" (it is
/// still there), usage "no-such-run" (it had already ended).
[[nodiscard]] Status end_run(const UnderWay& run);

}  // namespace sbx::run
