#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

/// The filter's decision about one call, as a small tree over the argument registers. The assembler
/// turns it into BPF and explain() walks it in C++, so both follow the same decision.
namespace sbx::plan {

/// Why an action was chosen. `Action::index` is the entry or rule, where there is one.
enum class Cause : std::uint8_t {
  admitted,
  not_in_base,     ///< not in the base
  deny_entry,      ///< syscalls.deny[index]
  rule,            ///< syscalls.rules[index]
  quiet_table,     ///< honest programs probe for it
  unknown_number,  ///< a gap, or newer than the table
  foreign_abi,     ///< x32 or another architecture
  socket_family,
  socket_unix,  ///< nothing else would block the host's abstract sockets
  socket_type,
  socket_protocol,
  socketpair_family,
  namespaces,   ///< CLONE_NEW*
  new_process,  ///< clone without CLONE_THREAD; index is the deny entry, or kNoIndex for the base
  terminal_input,  ///< ioctl
  prctl_option,
  other_process,  ///< prlimit64
  personality,
  second_listener,  ///< seccomp
  affinity_budget,
  polled_memory,
  polled_writes,  ///< fallocate
  unreadable,     ///< prctl
  set_id_mode,
  unseen_mode,   ///< openat2
  special_file,  ///< mknod
  whiteout,      ///< renameat2
  outer_proc,    ///< inotify, fanotify
  outside,       ///< the program is in the machine's own namespaces
};
inline constexpr std::uint32_t kNoIndex = UINT32_MAX;

struct Action {
  enum class Kind : std::uint8_t { allow, deny, quiet, kill };
  Kind kind = Kind::allow;
  std::uint16_t error = 0;  ///< errno of deny and quiet
  Cause cause = Cause::admitted;
  std::uint32_t index = kNoIndex;
};

/// Greater and greater-or-equal are unsigned.
enum class Compare : std::uint8_t { equal, greater, greater_equal, masked_equal };

struct Condition {
  std::uint8_t argument = 0;
  std::uint8_t bits = 64;  ///< width that the kernel reads: 16, 32 or 64
  Compare compare = Compare::equal;
  std::uint64_t value = 0;
  std::uint64_t mask = ~std::uint64_t{0};  ///< masked_equal

  [[nodiscard]] bool holds(const std::uint64_t (&arguments)[6]) const;
};

class Tree {
 public:
  using Id = std::uint32_t;
  Tree() { nodes_.reserve(64); }

  struct Node {
    bool is_leaf = true;
    Action action{};
    Condition condition{};
    Id yes = 0;
    Id no = 0;
  };

  Id leaf(Action action);
  Id branch(Condition condition, Id yes, Id no);
  /// The first of `conditions` that holds leads to `yes`.
  Id any(std::span<const Condition> conditions, Id yes, Id no);
  Id any(std::initializer_list<Condition> conditions, Id yes, Id no) {
    return any(std::span(conditions.begin(), conditions.size()), yes, no);
  }

  [[nodiscard]] const Node& at(Id id) const { return nodes_[id]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] Action evaluate(Id root, const std::uint64_t (&arguments)[6]) const;
  void clear() { nodes_.clear(); }

 private:
  std::vector<Node> nodes_;  ///< children precede their parents
};

}  // namespace sbx::plan
