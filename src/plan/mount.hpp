#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/mount_kind.hpp"
#include "plan/access.hpp"
#include "plan/seen_tree.hpp"

/// One step of building the file system that the program sees.
namespace sbx::plan {

using sbx::MountKind;

/// Kind of a name in the layer that lies over a granted directory.
enum class VeilKind : std::uint8_t {
  directory,  ///< created like the directory below, to hold deeper veils
  hidden,     ///< the name doesn't exist inside, even if the host creates it
  content,    ///< a file with `content` instead, with the mode and owner below
};
struct Veil {
  VeilKind kind{};
  std::string path;  ///< below the source
  std::string content{};
};

/// A file with several names in a directory. An overlay copies a file under one name when it is
/// written: the other names would keep the old one.
struct LinkedFile {
  FileId file;
  std::uint64_t links = 0;  ///< all of them, elsewhere too
  std::uint64_t size = 0;
  std::int64_t modified = 0;       ///< st_mtime in nanoseconds
  std::vector<std::string> names;  ///< below the source
};

/// A file or directory of the host, as it was when the plan was made: if it is another one at
/// set-up, the run fails with "changed during set-up".
struct HostSource {
  std::string path;  ///< canonical
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool is_directory = false;
  bool is_socket = false;
  bool others_may_use = false;  ///< its mode, not that of the directories on the way
  uid_t owner_uid = 0;          ///< decides the idmap
  gid_t owner_gid = 0;
  /// The sandbox's uid can't access the grant's files without an idmapped mount (privileged callers
  /// only).
  bool needs_idmap = false;
};

/// What a step needs besides its target: a type for each line of SBX_MOUNT_KINDS.
namespace mount {
struct Directory {
  mode_t mode = 0755;
};
struct Symlink {
  std::string text;
};
struct File {
  std::string content;
  mode_t mode = 0644;
  std::string copied_from{};  ///< a file of the host; empty: made by sbx
};
struct Bind {
  HostSource source;
  bool recursive = false;  ///< with the mounts below the source
};
/// An overlay may become a copy, so both know the same.
struct Layered {
  HostSource source;
  std::vector<Veil> veils{};  ///< hide parts of the source; parents come first
  std::uint64_t bytes = 0;    ///< what a copy of the source takes
  std::uint64_t entries = 0;
  std::uint32_t disk_place = 0;  ///< number of its directory on the private disk
  /// A writable overlay copies these up at the start, so that their names stay those of one file.
  std::vector<LinkedFile> linked{};
  std::vector<FileId> unlinked{};  ///< whose names don't stay so; sorted
  /// What an overlay's source held; a copy knows what it copied. Null: nobody looked.
  std::shared_ptr<const SeenTree> seen{};
};
struct Overlay : Layered {};
struct Copy : Layered {};
struct Device {
  std::string path;
  std::uint32_t number = 0;
};
struct Scratch {
  std::string directory;  ///< of base/private_disk.hpp
};
struct Content {
  std::string text{};
};
struct Proc {};
struct OuterProc {};
struct Devpts {};
struct MaskFile {};
struct MaskDirectory {};
struct ReadOnly {};
struct Pinned {};

template <class, class... Kinds>
using AfterFirst = std::variant<Kinds...>;
#define SBX_MOUNT_TYPE(kind, name, Type) , Type
using Payload = AfterFirst<void SBX_MOUNT_KINDS(SBX_MOUNT_TYPE)>;
#undef SBX_MOUNT_TYPE
}  // namespace mount

struct Mount {
  std::string target;
  mount::Payload payload;
  Rights rights{};  ///< what the program may do with what the step shows
  Origin origin{};  ///< the policy line that requires this step

  /// The list of kinds gives the payload its alternatives, in the same order.
  [[nodiscard]] MountKind kind() const { return static_cast<MountKind>(payload.index()); }
  [[nodiscard]] bool read_only() const { return !rights.write; }
  template <class Type>
  [[nodiscard]] const Type* as() const {
    return std::get_if<Type>(&payload);
  }
  template <class Type>
  [[nodiscard]] Type* as() {
    return std::get_if<Type>(&payload);
  }
  /// Null if this is neither an overlay nor a copy.
  [[nodiscard]] const mount::Layered* layered() const;
  [[nodiscard]] mount::Layered* layered();
  /// Null if this is neither a bind nor an overlay nor a copy.
  [[nodiscard]] const HostSource* host_source() const;
  [[nodiscard]] HostSource* host_source();
  /// What the step shows, as messages and the record name it: a path of the host, the text of a
  /// link, a directory of the private disk; empty for what the kernel or sbx makes.
  [[nodiscard]] const std::string& source() const;
};

/// Turns an overlay into a copy of its source.
void become_copy(Mount& step);

}  // namespace sbx::plan
