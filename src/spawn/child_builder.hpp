#pragma once

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/private_disk.hpp"
#include "spawn/child_calls.hpp"

// glibc 2.36 declares these in <sys/mount.h>, which clashes with <linux/mount.h>, so only one can
// be included.
extern "C" int mount(const char*, const char*, const char*, unsigned long, const void*) noexcept;
extern "C" int umount2(const char*, int) noexcept;

/// Shared by the child's mount code: the builder's state, targets created without following links,
/// new file systems. All child-safe.
namespace sbx::child {

inline constexpr unsigned long kMsPrivate = 1 << 18;  // MS_PRIVATE
inline constexpr std::uint64_t kNoLinks = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
inline constexpr unsigned kCloneTree = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
inline constexpr std::size_t kOwnMounts = 256;

/// The directory of the last target: most steps use the same one as the step before.
struct OpenDirectory {
  static constexpr std::size_t kLongest = 255;  ///< longer paths are opened each time
  int fd = -1;
  bool own = false;              ///< missing targets may be created in it
  std::size_t length = 0;        ///< of the path
  char path[kLongest + 1] = {};  ///< relative to the new root; "." is the root
};

/// The builder's state: a few descriptors, and where it may write.
struct Builder {
  Program& program;
  int root = -1;
  int covered = -1;          ///< the directory below the sandbox's procfs: empty, and stays so
  int empty_directory = -1;  ///< mask for directories, created on first use
  int empty_file = -1;       ///< mask for files
  /// Ids of the sandbox's own mounts: missing targets may only be created there. Device numbers
  /// don't identify them: a private disk in a directory shares its device with live grants.
  std::uint64_t own[kOwnMounts] = {};
  std::size_t own_count = 0;
  OpenDirectory directory;
  OpenDirectory source_directory;  ///< directory of the last source, with its host path
  std::size_t index = 0;           ///< of the current step
  Stage stage = Stage::root;       ///< of the current step

  /// The detached mount that the parent made for the current step; -1: there is none.
  [[nodiscard]] int tree() const {
    return program.channels.trees == nullptr ? -1 : program.channels.trees[index];
  }
  long must(long result) const { return child::must(program, stage, index, result); }
  [[noreturn]] void give_up(int error) const { child::give_up(program, stage, index, error); }
};

/// openat2(2), close-on-exec.
int open_beneath(int directory, const char* path, std::uint64_t flags, std::uint64_t resolve);
/// From now on missing targets may be created in the mount of `fd`.
void remember_own(Builder& builder, int fd);
/// The directory of `path` (relative to the root), created if missing; `*name` is the last
/// component. The descriptor belongs to the builder and is valid until the next call.
int parent_directory(Builder& builder, const char* path, const char** name);
/// The same without creating anything; -1 if there is no such directory.
int existing_parent(Builder& builder, const char* path, const char** name);
/// Opens a mount target: ensures that it exists and has the right type, and follows no link.
int open_target(Builder& builder, const char* path, bool is_directory);
/// Attaches a detached tree to an open target, move_mount(2).
void attach(const Builder& builder, int tree, int target);
/// The same for a name in a directory, without following a link.
void attach_at(const Builder& builder, int tree, int directory, const char* name);
/// The same for a path, created if missing and allowed. Closes `tree`.
void place(Builder& builder, int tree, const char* path, bool is_directory);
/// Drops remembered descriptors below `path`: a new mount covers them.
void forget_directory(Builder& builder, const char* path);
/// Sets MOUNT_ATTR_* and makes the tree private.
void set_attributes(const Builder& builder, int tree, std::uint64_t attributes, bool recursive);

/// Opens the source in this mount namespace: the parent's descriptors belong to another one, where
/// open_tree(CLONE) fails with EINVAL. Device and inode must be those that the plan recorded.
int open_source(const Builder& builder, const Step& step);
/// open_tree(CLONE) of a source, in one step. Device and inode must be what the parent decided on.
int clone_source(Builder& builder, const char* path, bool recursive, std::uint64_t device,
                 std::uint64_t inode);
/// The same of any path of the host. No link is followed; `facts` are of what was cloned.
int clone_path(Builder& builder, const char* path, bool recursive, struct stat& facts);
void write_content(const Builder& builder, int file, const char* content, std::size_t size);
/// Appends decimal digits and a NUL; `end` moves to the NUL.
void append_number(char*& end, std::uint64_t number);

/// An option of a new file system; a null value means a flag, a null key is skipped.
struct Option {
  const char* key;
  const char* value;
};
/// Creates a file system without attaching it.
int make_file_system(const Builder& builder, const char* type, const Option* options,
                     std::size_t count, std::uint64_t attributes);
template <std::size_t N>
int make_file_system(const Builder& builder, const char* type, const Option (&options)[N],
                     std::uint64_t attributes) {
  return make_file_system(builder, type, options, N, attributes);
}

/// Shows a directory of the host through overlayfs (child_overlay.cpp).
void add_overlay(Builder& builder, const Step& step);
/// Adds a directory that the parent fills with a copy.
void add_copy(Builder& builder, const Step& step);
/// Executes one step of the plan, by its kind (child_mounts.cpp).
void add_step(Builder& builder, std::size_t index);

}  // namespace sbx::child
