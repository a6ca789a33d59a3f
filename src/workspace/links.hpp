#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/held.hpp"
#include "plan/mount.hpp"

/// Files with several names (hard links) in a change set.
namespace sbx::workspace {

/// What else has the file of a changed name.
struct Linked {
  std::uint64_t file = 0;  ///< changed names with the same number are names of one file; 0: none
  /// A name that stays as it is, and whose file gets this name too; empty: none has.
  std::string to{};
  std::uint64_t names = 0;  ///< of the file that `to` has on the host: those in the workspace
  bool is_split = false;    ///< its other names in the workspace did not stay so inside
};
using Links = std::unordered_map<std::string, Linked>;  ///< by path below the workspace

/// One regular file of a writable layer, as the comparison saw it.
struct SeenFile {
  std::string path;  ///< below the workspace
  struct stat now{};
  std::optional<struct stat> before{};  ///< of the host; none: the name is new
  std::optional<ChangeKind> change{};   ///< none: content and mode are the host's
};

/// Finds out how the names of files differ from those of the host.
class LinkedNames {
 public:
  /// `unlinked`: files of the host whose names an overlay could not keep together; sorted.
  explicit LinkedNames(const std::vector<plan::FileId>& unlinked) : unlinked_(unlinked) {}

  [[nodiscard]] static bool may_matter(const struct stat& now, const struct stat* before) {
    return S_ISREG(now.st_mode) &&
           (now.st_nlink > 1 ||
            (before != nullptr && S_ISREG(before->st_mode) && before->st_nlink > 1));
  }
  void add(SeenFile file) { files_.push_back(std::move(file)); }
  /// A name of the host that is gone.
  void add_gone(const std::string& path, const struct stat& before);

  /// Names whose content is the host's, but which have another file than there. What they are named
  /// with, and what is known of the changed ones, is in `links` then. `is_fixed`: asked whether no
  /// other name may get the file of this one.
  [[nodiscard]] std::vector<const SeenFile*> relate(
      Links& links, std::uint64_t& next_number,
      const std::function<bool(const std::string& path)>& is_fixed);

 private:
  using Inner = std::vector<const SeenFile*>;  ///< the names of one file inside
  [[nodiscard]] bool is_split(const struct stat& before) const;
  [[nodiscard]] std::map<plan::FileId, const Inner*> owners(
      const std::map<plan::FileId, Inner>& inner) const;
  void note_split(Links& links) const;

  const std::vector<plan::FileId>& unlinked_;
  std::vector<SeenFile> files_;
  struct Gone {
    std::string path;
    struct stat before{};
  };
  std::vector<Gone> gone_;
  std::map<plan::FileId, std::uint64_t> known_;  ///< names in the workspace, by file of the host
};

}  // namespace sbx::workspace
