#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "workspace/changes.hpp"
#include "workspace/leftovers.hpp"
#include "workspace/put.hpp"

/// New content on its way to directories of the host: each name is written whole into a directory
/// with a temporary name beside its place, and one rename(2) puts it there. A new directory waits
/// with all that is in it.
namespace sbx::workspace {

class Staging {
 public:
  Staging(const Copy& copy, Notes& notes) : copy_(copy), notes_(notes) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Removes what was not put in its place.
  ~Staging() { clear(); }

  /// The directory of a change is itself new.
  [[nodiscard]] bool is_in_new(const Change& change) const {
    return new_.contains(directory_of_change(change));
  }
  /// `above`: who gets it. Errors: host.
  [[nodiscard]] Status add_directory(const Change& change, std::optional<Owner> owner);
  [[nodiscard]] Status add_link(const Change& change, const std::string& text,
                                std::optional<Owner> owner);
  /// `source`: what it holds. `number`: names of one file have the same, other than 0, the same
  /// mode and the same owner; they become names of one file. Errors: host.
  [[nodiscard]] Status add_file(const Change& change, int source, mode_t mode,
                                std::optional<Owner> owner, std::uint64_t number);
  /// A name of an open file of the host. False: the kernel refuses it, as on another file system.
  /// Errors: host.
  [[nodiscard]] Result<bool> add_name(const Change& change, int file);
  /// Who gets what is made in a new directory.
  [[nodiscard]] std::optional<Owner> owner_in_new(const Change& change) const;

  /// A new directory keeps its identity in its place. Nothing for others.
  [[nodiscard]] std::optional<held::Identity> identity_of(const std::string& path) const;
  /// What waits for its name in a directory of the host. Errors: host (another process took or
  /// replaced the temporary directory).
  [[nodiscard]] Result<held::Name> waiting(const Change& change);
  /// Removes everything that still waits.
  void clear();

 private:
  /// A directory that was made here. Another process may have put another one in its place.
  struct Place {
    std::string path;  ///< below its layer
    std::optional<held::Identity> identity;
  };
  struct NewDirectory {
    Place place;  ///< where it waits
    std::optional<Owner> owner;
  };
  static std::string directory_of_change(const Change& change);
  /// An open directory to write a change to.
  Result<int> directory_for(const Change& change);
  Result<int> open_place(const Layer& layer, const Place& place);
  Result<Place> place_beside(const LayerPath& path, const std::string& directory);

  const Copy& copy_;
  Notes& notes_;
  /// Another name for a file that waits already; false where that can't be.
  Result<bool> add_known(const Change& change, int directory, std::uint64_t number);

  struct Known {
    std::string path;  ///< its first name
    Place place;
  };
  std::unordered_map<std::uint64_t, Known> known_;     ///< files with several names, by number
  std::unordered_map<std::string, NewDirectory> new_;  ///< by path below the workspace
  std::unordered_map<std::string, Place> beside_;      ///< by directory: its temporary one
  const Layer* open_layer_ = nullptr;                  ///< of the directory that is open
  std::string open_place_;
  UniqueFd open_;
};

}  // namespace sbx::workspace
