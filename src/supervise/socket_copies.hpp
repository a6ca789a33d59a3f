#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

/// The inode in the text of a link "socket:[N]" of /proc/PID/fd; nothing in other links.
[[nodiscard]] std::optional<std::uint64_t> socket_in_link(std::string_view link);

/// The supervisor's copies of the sockets that it has made for a program, by inode: one until that
/// socket is connected or bound. Who held one longer would keep its peer from seeing the program's
/// close.
class SocketCopies {
 public:
  using Inode = std::uint64_t;
  /// Below `keeper` are the program's processes.
  explicit SocketCopies(pid_t keeper);

  /// Makes room where it is full: those that no process of the program has any more go. Reads every
  /// process's list of descriptors, up to a bound. False: still full.
  [[nodiscard]] bool has_room();
  /// Where that gave little it is not to be done again at once: the loop has budgets to watch.
  [[nodiscard]] bool must_rest() const;
  [[nodiscard]] std::uint64_t rests_until() const { return rests_until_; }
  [[nodiscard]] std::size_t most() const { return most_; }
  void add(UniqueFd socket);
  /// -1: none.
  [[nodiscard]] int find(Inode inode) const;
  void drop(Inode inode) { copies_.erase(inode); }
  [[nodiscard]] static Inode inode_of(int socket);

 private:
  void sweep();
  /// Nothing where that can't be told.
  [[nodiscard]] std::optional<std::set<Inode>> in_use() const;

  pid_t keeper_;
  std::size_t most_;
  std::uint64_t rests_until_ = 0;  ///< microseconds
  std::map<Inode, UniqueFd> copies_;
};

}  // namespace sbx::supervise
