#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The runs of one user that are under way. Each run holds a listening socket with an abstract name,
/// unix(7): the kernel removes it when the process ends, however it ends, so nothing is left behind
/// and nothing is stale. The name carries the id; SO_PEERCRED tells the process and its user, whom
/// another user can't forge. Abstract names belong to a network namespace: a run in another one is
/// not seen, and a sandbox with a network namespace of its own sees none.
namespace sbx::run {

struct UnderWay {
  std::string id;          ///< of the record: "r_" and 16 hexadecimal digits
  std::string policy;      ///< its name
  pid_t pid = 0;           ///< of the `sbx run`; 0: in a PID namespace that the caller does not see
  std::int64_t since = 0;  ///< seconds since 1970; 0: not known
  std::vector<std::string> command;  ///< the command line of sbx
};

/// Lists this process until it is destroyed. A run that can't be listed goes on without.
class Announcement {
 public:
  Announcement(const std::string& id, const std::string& policy);

  /// Lets go of those who asked, so that the next ones can. Errors: internal.
  [[nodiscard]] Status attach(EventLoop& loop);

 private:
  void let_go(EventLoop& loop);

  UniqueFd socket_;
};

/// Those of the caller's user, by the time they began. Errors: host (no /proc).
[[nodiscard]] Result<std::vector<UnderWay>> runs_under_way();

/// Asks a run to end, as SIGTERM does, and waits for its process to end. Errors: host "not-ended"
/// (it is there still), usage "no-such-run" (it had ended before).
[[nodiscard]] Status end_run(const UnderWay& run);

}  // namespace sbx::run
