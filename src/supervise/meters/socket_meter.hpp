#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/socket_request.hpp"
#include "base/unique_fd.hpp"
#include "supervise/settings.hpp"

namespace sbx::supervise {

/// Memory held by the sockets of one network namespace, read with sock_diag(7) through a
/// NETLINK_SOCK_DIAG socket created there; needs no capability. A socket counts wherever its
/// descriptor is, even in flight between processes.
///
/// The result is a lower bound. The kernel charges data queued in a unix socket to the sender, and
/// doesn't list sockets that the program has closed: for such queues only the bytes in the queue
/// count, for datagrams only the first one. Reset TCP sockets and disconnected UDP sockets aren't
/// listed either. may_hide() is the upper bound for all of them.
class SocketMeter {
 public:
  /// The request that creates SocketDiagnosis::fd.
  [[nodiscard]] static SocketRequest request();
  /// `processes`: a borrowed procfs of the sandbox, or -1 for the host's, where PID 1 is `pid1`.
  SocketMeter(const SocketDiagnosis& own, pid_t pid1, int processes);

  /// Bytes that are certainly in use; 0 without a diagnosis. Each call reads a part of the kernel's
  /// lists. Listing restarts before the sockets could hold `room` bytes more, as far as its share
  /// of the time allows.
  [[nodiscard]] std::uint64_t look(std::uint64_t room);
  /// Lists all of them now, however long it takes.
  [[nodiscard]] std::uint64_t look_at_all(std::uint64_t room);
  /// CPU time that the last look took, in microseconds.
  [[nodiscard]] std::uint64_t cost() const { return cost_; }
  /// The largest number of unlisted sockets in any listing, and the bytes that they could hold.
  [[nodiscard]] std::uint64_t hidden() const { return hidden_; }
  [[nodiscard]] std::uint64_t may_hide() const;
  /// Kinds of sockets that this kernel can't list, "unix, TCP"; empty: none.
  [[nodiscard]] const std::string& unlisted() const { return unlisted_; }

 private:
  struct List {
    const char* kind;
    int family;
    int protocol;
  };
  /// Number of sockets in the namespace, /proc/PID/net/sockstat.
  struct Counts {
    std::uint64_t all = UINT64_MAX;
    std::uint64_t tcp = UINT64_MAX;
    std::uint64_t tcp6 = UINT64_MAX;
  };
  /// Sums over the lists read so far.
  struct Sum {
    std::uint64_t bytes = 0;
    std::uint64_t sockets = 0;
  };
  [[nodiscard]] Counts counts();
  void begin(const Counts& now);
  void go_on(std::uint64_t most_microseconds);
  void finish(std::uint64_t room);
  [[nodiscard]] bool ask(const List& list) const;
  void ask_next();
  /// Returns true if the list continues.
  [[nodiscard]] bool read_part();
  void add(const void* body, std::size_t size);
  void note_unlisted(const char* kind);

  const SocketDiagnosis own_;
  const std::string net_;  ///< the process's directory in `processes_`
  const int processes_;
  UniqueFd sockstat_;
  UniqueFd sockstat6_;
  std::vector<List> lists_;  ///< still to be read; the last one is in progress
  bool reads_ = false;
  std::uint64_t begins_at_ = 0;     ///< microseconds
  std::uint64_t listing_cost_ = 0;  ///< of the listing in progress
  std::uint64_t cost_ = 0;
  Counts at_begin_;
  Sum sum_;
  std::uint64_t known_ = 0;  ///< bytes, from the last complete listing
  std::uint64_t hidden_ = 0;
  std::string unlisted_;
  std::vector<std::byte> room_;
};

}  // namespace sbx::supervise
