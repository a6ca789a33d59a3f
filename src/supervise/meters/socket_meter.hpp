#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/socket_wish.hpp"
#include "base/unique_fd.hpp"
#include "supervise/settings.hpp"

namespace sbx::supervise {

/// What the sockets of one network namespace hold, by sock_diag(7) on a socket of NETLINK_SOCK_DIAG that was made there: no
/// capability is needed. A socket counts wherever its descriptor is, in flight between processes too.
///
/// The result is a lower bound. The kernel charges what waits in a unix socket to its sender, and lists no socket that its
/// program has closed: of such queues the bytes in the queue count, of datagrams only the first one. A TCP socket that was
/// reset and a UDP socket that was disconnected aren't listed either. may_hide() is their upper bound.
class SocketMeter {
 public:
  /// What SocketDiagnosis::fd is made by.
  [[nodiscard]] static SocketWish wish();
  /// `processes`: a borrowed procfs of the sandbox, or -1 for the host's, where PID 1 is `pid1`.
  SocketMeter(const SocketDiagnosis& own, pid_t pid1, int processes);

  /// Bytes that are surely there. Reads a part of the kernel's lists at a time, and begins again before the
  /// sockets could hold `room` bytes more, as far as the share of listing allows. Where there is no diagnosis: 0.
  [[nodiscard]] std::uint64_t look(std::uint64_t room);
  /// Lists all of them now, however long that takes.
  [[nodiscard]] std::uint64_t look_at_all(std::uint64_t room);
  /// Microseconds of CPU time that the last of these took.
  [[nodiscard]] std::uint64_t cost() const { return cost_; }
  /// Sockets that no list had, the most of all listings, and the bytes that they could hold.
  [[nodiscard]] std::uint64_t hidden() const { return hidden_; }
  [[nodiscard]] std::uint64_t may_hide() const;
  /// Kinds of sockets that this kernel has no lists of, "unix, TCP"; empty: none.
  [[nodiscard]] const std::string& unlisted() const { return unlisted_; }

 private:
  struct List {
    const char* kind;
    int family;
    int protocol;
  };
  /// Sockets in the namespace, /proc/PID/net/sockstat.
  struct Counts {
    std::uint64_t all = UINT64_MAX;
    std::uint64_t tcp = UINT64_MAX;
    std::uint64_t tcp6 = UINT64_MAX;
  };
  /// What the lists have told so far.
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
  /// Whether the list goes on.
  [[nodiscard]] bool read_part();
  void add(const void* body, std::size_t size);
  void note_unlisted(const char* kind);

  const SocketDiagnosis own_;
  const std::string net_;  ///< its directory in `processes_`
  const int processes_;
  UniqueFd sockstat_;
  UniqueFd sockstat6_;
  std::vector<List> lists_;  ///< still to be read; the last is under way
  bool reads_ = false;
  std::uint64_t begins_at_ = 0;     ///< microseconds
  std::uint64_t listing_cost_ = 0;  ///< of the listing under way
  std::uint64_t cost_ = 0;
  Counts at_begin_;
  Sum sum_;
  std::uint64_t known_ = 0;  ///< bytes, by the last complete listing
  std::uint64_t hidden_ = 0;
  std::string unlisted_;
  std::vector<std::byte> room_;
};

}  // namespace sbx::supervise
