#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <utility>

#include "base/held.hpp"

namespace sbx::workspace {

/// Which of some files a process holds open or mapped, as far as its /proc may be read: that of the
/// caller's own processes mostly. Where one of the caller's can't be looked at, because it has
/// capabilities, all of them count as used.
class UsedFiles {
 public:
  void ask(held::Identity file) { asked_.emplace(file.device, file.inode); }
  /// Looks at every process but this one.
  void look();
  [[nodiscard]] bool has(held::Identity file) const {
    return some_is_closed_ || used_.contains({file.device, file.inode});
  }

 private:
  using Key = std::pair<dev_t, ino_t>;
  void look_at(int proc, const std::string& process);
  [[nodiscard]] bool look_at_descriptors(int proc, const std::string& process);
  [[nodiscard]] bool look_at_maps(int proc, const std::string& process);
  void note(Key file) {
    if (asked_.contains(file)) used_.insert(file);
  }

  std::set<Key> asked_;
  std::set<Key> used_;
  bool some_is_closed_ = false;
};

}  // namespace sbx::workspace
