#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/held.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "workspace/conflicts.hpp"
#include "workspace/host_names.hpp"
#include "workspace/links.hpp"
#include "workspace/put.hpp"

namespace sbx::workspace {

/// What the names of one file get in common when changes are applied: the file, its mode, its
/// owner.
class LinkedFiles {
 public:
  LinkedFiles(const Copy& copy, const Links& links, HostNames& names)
      : copy_(copy), links_(links), names_(names) {}

  [[nodiscard]] const Linked& of(const Change& change) const;
  /// A change that is to be made.
  void note(const Step& step);
  /// One that was made by an application that was killed.
  void note_done(const Change& change);
  /// Its name is one already of the file that it is to become a name of.
  [[nodiscard]] bool is_linked_already(const Step& step);
  /// Another name has its file, or is to get it.
  [[nodiscard]] bool is_shared(const Change& change) const;
  /// A file of the host that stays as it is, or was written before, and gets this name too, where
  /// all its names are in the workspace. Invalid: the name gets a file of its own. Errors: host.
  [[nodiscard]] Result<UniqueFd> to_share(const Step& step);

  /// The same for all names of a file; `owner_of` says who owns what replaces one of them.
  using OwnerOf = std::function<Result<std::optional<Owner>>(const Step& step)>;
  [[nodiscard]] Result<std::optional<Owner>> owner(const Step& step, const OwnerOf& owner_of);
  /// Permissions of the files that its names replace; none: it has one name.
  [[nodiscard]] std::optional<mode_t> mode_before(const Change& change) const;

 private:
  /// What the names of one file get, whichever of them is written first.
  struct File {
    mode_t before = 0;            ///< permissions of what is replaced
    const Step* model = nullptr;  ///< the first that replaces a file
    std::optional<std::optional<Owner>> owner{};
    std::string done{};  ///< a name that an application which was killed wrote
    std::uint64_t done_names = 0;
  };
  /// A file of the host that is to get more names.
  struct Stays {
    std::optional<held::Identity> identity{};  ///< none: it is not what it was
    std::uint64_t links = 0;
    std::uint64_t added = 0;  ///< names that it has from an application that was killed
  };
  Stays& stays(const Change& change, const std::string& path);
  [[nodiscard]] bool holds_the_same(const Change& change, const Spot& spot);

  const Copy& copy_;
  const Links& links_;
  HostNames& names_;
  std::unordered_map<std::uint64_t, File> files_;  ///< by Linked::file
  std::unordered_map<std::string, Stays> stays_;   ///< by path
};

}  // namespace sbx::workspace
