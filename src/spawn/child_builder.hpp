#pragma once

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "spawn/child_calls.hpp"

// glibc 2.36 declares these in <sys/mount.h>, which clashes with <linux/mount.h>: both can't be
// included.
extern "C" int mount(const char*, const char*, const char*, unsigned long, const void*) noexcept;
extern "C" int umount2(const char*, int) noexcept;

/// What the child's mount code shares: the state of building, targets made without following links,
/// new file systems. All child-safe.
namespace sbx::child {

inline constexpr unsigned long kMsPrivate = 1 << 18;  // MS_PRIVATE
inline constexpr std::uint64_t kNoLinks = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
inline constexpr unsigned kCloneTree = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
inline constexpr std::size_t kOwnMounts = 256;

/// The folder that the last target lies in: most steps go into the same one as the step before.
struct OpenFolder {
  static constexpr std::size_t kLongest = 255;  ///< longer paths are opened each time
  int fd = -1;
  bool own = false;              ///< missing targets may be made in it
  std::size_t length = 0;        ///< of the path
  char path[kLongest + 1] = {};  ///< relative to the new root; "." is the root
};

/// The state of building: a few descriptors and what may be written into.
struct Builder {
  Program& program;
  int root = -1;
  int covered = -1;       ///< the folder that the sandbox's procfs lies on: empty, and stays so
  int empty_folder = -1;  ///< the mask of folders, once made
  int empty_file = -1;    ///< the mask of files
  std::uint64_t overlays = 0;
  /// Mounts of the sandbox's own, by their ids: missing targets may be made there only. Not by
  /// device: a private disk in a folder shares that with live grants.
  std::uint64_t own[kOwnMounts] = {};
  std::size_t own_count = 0;
  OpenFolder folder;
  OpenFolder source_folder;   ///< the same of the last source; its path is the host's
  std::size_t index = 0;      ///< of the current step
  Stage stage = Stage::root;  ///< of the current step

  long must(long result) const { return child::must(program, stage, index, result); }
  [[noreturn]] void give_up(int error) const { child::give_up(program, stage, index, error); }
};

/// openat2(2), close-on-exec.
int open_beneath(int folder, const char* path, std::uint64_t flags, std::uint64_t resolve);
/// From here on missing targets may be made in the mount of `fd`.
void remember_own(Builder& builder, int fd);
/// The folder that holds `path` (relative to the root), making what is missing; `*name` is the last
/// component. The descriptor belongs to the builder and lasts until the next call.
int parent_folder(Builder& builder, const char* path, const char** name);
/// The same where nothing may be made; -1 when there is no such folder.
int existing_parent(Builder& builder, const char* path, const char** name);
/// The place where a mount goes: exists, is of the right kind, and no link was followed.
int open_target(Builder& builder, const char* path, bool is_folder);
/// move_mount(2) of a detached tree onto a target that is open.
void attach(const Builder& builder, int tree, int target);
/// The same onto a name in a folder, no link followed.
void attach_at(const Builder& builder, int tree, int folder, const char* name);
/// The same onto a path, which is made when it is missing and may be made. Closes `tree`.
void place(Builder& builder, int tree, const char* path, bool is_folder);
/// A descriptor below `path` no longer leads where its name does: something was mounted there.
void forget_folder(Builder& builder, const char* path);
/// Sets MOUNT_ATTR_* and makes the tree private.
void set_attributes(const Builder& builder, int tree, std::uint64_t attributes, bool recursive);

/// The source as this mount namespace sees it: the parent's descriptors belong to another one,
/// where open_tree(CLONE) answers EINVAL. Device and inode must be what the parent decided on.
int open_source(const Builder& builder, const Step& step);
/// open_tree(CLONE) of it, in one step.
int clone_source(Builder& builder, const Step& step);
/// The same of any path of the host. No link is followed; `facts` are of what was cloned.
int clone_path(Builder& builder, const char* path, bool recursive, struct stat& facts);
void write_content(const Builder& builder, int file, const char* content, std::size_t size);
/// Decimal digits and a zero byte; `end` moves to that byte.
void append_number(char*& end, std::uint64_t number);

/// An option of a new file system; a null value is a flag, a null key is skipped.
struct Option {
  const char* key;
  const char* value;
};
/// A new file system, not attached yet.
int make_file_system(const Builder& builder, const char* type, const Option* options,
                     std::size_t count, std::uint64_t attributes);
template <std::size_t N>
int make_file_system(const Builder& builder, const char* type, const Option (&options)[N],
                     std::uint64_t attributes) {
  return make_file_system(builder, type, options, N, attributes);
}

/// A folder of the host through overlayfs (child_overlay.cpp).
void add_overlay(Builder& builder, const Step& step);
/// A folder that the parent fills with a copy.
void add_copy(Builder& builder, const Step& step);
/// One step of the plan, by its kind (child_mounts.cpp).
void add_step(Builder& builder, std::size_t index);

}  // namespace sbx::child
