// Targets and file systems of the new root; see child_builder.hpp.

#include "spawn/child_builder.hpp"

#include <climits>
#include <cstring>

namespace sbx::child {
namespace {

/// 0 if unknown.
std::uint64_t mount_of(int fd) {
  struct statx facts;
  if (call(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &facts) != 0 ||
      (facts.stx_mask & STATX_MNT_ID) == 0)
    return 0;
  return facts.stx_mnt_id;
}

/// Never creates missing targets in a live grant: that would write to the host.
bool may_make_in(const Builder& builder, int directory) {
  const std::uint64_t mount = mount_of(directory);
  if (mount == 0) return false;
  for (std::size_t i = 0; i < builder.own_count; ++i)
    if (builder.own[i] == mount) return true;
  return false;
}

}  // namespace

int open_beneath(int directory, const char* path, std::uint64_t flags, std::uint64_t resolve) {
  const open_how how{.flags = flags | O_CLOEXEC, .mode = 0, .resolve = resolve};
  return static_cast<int>(call(SYS_openat2, directory, path, &how, sizeof how));
}

void remember_own(Builder& builder, int fd) {
  const std::uint64_t mount = mount_of(fd);
  if (mount != 0 && builder.own_count < kOwnMounts) builder.own[builder.own_count++] = mount;
}

namespace {

int open_directory(int directory, const char* path) {
  return open_beneath(directory, path, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | kNoLinks);
}

/// mkdir -p below `directory`, component by component; temporarily cuts `path` at its slashes.
int make_directories(const Builder& builder, char* path) {
  int directory =
      static_cast<int>(builder.must(open_beneath(builder.root, ".", O_PATH | O_DIRECTORY, 0)));
  for (char* component = path; component != nullptr;) {
    char* const slash = std::strchr(component, '/');
    if (slash != nullptr) *slash = '\0';
    int next = open_directory(directory, component);
    if (next < 0 && errno == ENOENT) {
      if (!may_make_in(builder, directory)) builder.give_up(EROFS);
      builder.must(::mkdirat(directory, component, 0755));
      next = open_directory(directory, component);
    }
    builder.must(next);
    ::close(directory);
    directory = next;
    component = slash != nullptr ? slash + 1 : nullptr;
  }
  return directory;
}

}  // namespace

namespace {

enum class Missing : std::uint8_t { is_made, is_told };

int open_parent(const Builder& builder, const char* path, std::size_t length, Missing missing) {
  char parent[PATH_MAX] = ".";
  if (length >= sizeof parent) builder.give_up(ENAMETOOLONG);
  if (length > 0) {
    std::memcpy(parent, path, length);
    parent[length] = '\0';
  }
  const int directory = open_directory(builder.root, parent);
  if (directory >= 0) return directory;
  if (errno != ENOENT) builder.give_up(errno);
  return missing == Missing::is_made ? make_directories(builder, parent) : -1;
}

bool is_remembered(const OpenDirectory& directory, const char* path, std::size_t length) {
  return directory.fd >= 0 && directory.length == length && length <= OpenDirectory::kLongest &&
         std::memcmp(directory.path, path, length) == 0;
}

/// Creates `name` if it is missing and allowed; false doesn't tell whether it exists.
bool make_target(const Builder& builder, int directory, const char* name, bool is_directory) {
  if (!builder.directory.own) return false;
  return (is_directory ? ::mkdirat(directory, name, 0755)
                       : ::mknodat(directory, name, S_IFREG | 0644, 0)) == 0;
}

int open_name(const Builder& builder, int directory, const char* name, bool is_directory) {
  const int target = open_beneath(directory, name, O_PATH | (is_directory ? O_DIRECTORY : 0U),
                                  RESOLVE_BENEATH | kNoLinks);
  if (target < 0 && errno == ENOENT) builder.give_up(EROFS);
  return static_cast<int>(builder.must(target));
}

}  // namespace

namespace {

int parent_of(Builder& builder, const char* path, const char** name, Missing missing) {
  const char* const slash = std::strrchr(path, '/');
  *name = slash != nullptr ? slash + 1 : path;
  const auto length = slash != nullptr ? static_cast<std::size_t>(slash - path) : 0;
  OpenDirectory& directory = builder.directory;
  if (is_remembered(directory, path, length)) return directory.fd;
  if (directory.fd >= 0) ::close(directory.fd);
  directory.fd = open_parent(builder, path, length, missing);
  if (directory.fd < 0) return -1;
  directory.own = may_make_in(builder, directory.fd);
  directory.length = length;
  if (length <= OpenDirectory::kLongest) std::memcpy(directory.path, path, length);
  return directory.fd;
}

}  // namespace

int parent_directory(Builder& builder, const char* path, const char** name) {
  return parent_of(builder, path, name, Missing::is_made);
}

int existing_parent(Builder& builder, const char* path, const char** name) {
  return parent_of(builder, path, name, Missing::is_told);
}

void forget_directory(Builder& builder, const char* path) {
  OpenDirectory& directory = builder.directory;
  const std::size_t length = std::strlen(path);
  if (directory.fd < 0 || directory.length < length) return;
  const bool comparable = directory.length <= OpenDirectory::kLongest;
  if (comparable && (std::memcmp(directory.path, path, length) != 0 ||
                     (directory.length > length && directory.path[length] != '/')))
    return;
  ::close(directory.fd);
  directory.fd = -1;
}

/// Most targets are new, so this creates first and opens second.
int open_target(Builder& builder, const char* path, bool is_directory) {
  const char* name = nullptr;
  const int directory = parent_directory(builder, path, &name);
  (void)make_target(builder, directory, name, is_directory);  // opening it reports a failure
  return open_name(builder, directory, name, is_directory);
}

/// The new target is not a link, and nobody else works in the new root: attaching by name is safe
/// and saves opening it.
void place(Builder& builder, int tree, const char* path, bool is_directory) {
  const char* name = nullptr;
  const int directory = parent_directory(builder, path, &name);
  if (make_target(builder, directory, name, is_directory)) {
    attach_at(builder, tree, directory, name);
  } else {
    const int target = open_name(builder, directory, name, is_directory);
    attach(builder, tree, target);
    ::close(target);
  }
  ::close(tree);
}

void attach(const Builder& builder, int tree, int target) {
  builder.must(call(SYS_move_mount, tree, "", target, "",
                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

void attach_at(const Builder& builder, int tree, int directory, const char* name) {
  builder.must(call(SYS_move_mount, tree, "", directory, name, MOVE_MOUNT_F_EMPTY_PATH));
}

void set_attributes(const Builder& builder, int tree, std::uint64_t attributes, bool recursive) {
  mount_attr change{};
  change.attr_set = attributes;
  change.propagation = kMsPrivate;
  builder.must(call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0),
                    &change, sizeof change));
}

int open_source(const Builder& builder, const Step& step) {
  const int source =
      static_cast<int>(builder.must(open_beneath(AT_FDCWD, step.source, O_PATH, kNoLinks)));
  struct stat facts;
  builder.must(::fstat(source, &facts));
  if (facts.st_dev != step.device || facts.st_ino != step.inode) builder.give_up(ESTALE);
  return source;
}

namespace {

/// Remembers the last directory: many sources are neighbours (files of /etc, devices).
int source_directory(Builder& builder, const char* path, std::size_t length) {
  OpenDirectory& directory = builder.source_directory;
  if (is_remembered(directory, path, length)) return directory.fd;
  if (directory.fd >= 0) ::close(directory.fd);
  char parent[PATH_MAX] = "/";
  if (length >= sizeof parent) builder.give_up(ENAMETOOLONG);
  if (length > 0) {
    std::memcpy(parent, path, length);
    parent[length] = '\0';
  }
  directory.fd = static_cast<int>(
      builder.must(open_beneath(AT_FDCWD, parent, O_PATH | O_DIRECTORY, kNoLinks)));
  directory.length = length;
  if (length <= OpenDirectory::kLongest) std::memcpy(directory.path, path, length);
  return directory.fd;
}

}  // namespace

int clone_path(Builder& builder, const char* path, bool recursive, struct stat& facts) {
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash != nullptr && slash[1] != '\0' ? slash + 1 : ".";
  const int directory = source_directory(
      builder, path, slash != nullptr ? static_cast<std::size_t>(slash - path) : 0);
  const int tree =
      static_cast<int>(builder.must(call(SYS_open_tree, directory, name,
                                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
                                             (recursive ? AT_RECURSIVE : 0U))));
  builder.must(::fstat(tree, &facts));
  return tree;
}

int clone_source(Builder& builder, const char* path, bool recursive, std::uint64_t device,
                 std::uint64_t inode) {
  struct stat facts;
  const int tree = clone_path(builder, path, recursive, facts);
  if (facts.st_dev != device || facts.st_ino != inode) builder.give_up(ESTALE);
  return tree;
}

void write_content(const Builder& builder, int file, const char* content, std::size_t size) {
  for (std::size_t done = 0; done < size;)
    done += static_cast<std::size_t>(builder.must(::write(file, content + done, size - done)));
}

void append_number(char*& end, std::uint64_t number) {
  char digits[24];
  std::size_t count = 0;
  do digits[count++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  while (count > 0) *end++ = digits[--count];
  *end = '\0';
}

int make_file_system(const Builder& builder, const char* type, const Option* options,
                     std::size_t count, std::uint64_t attributes) {
  const int context = static_cast<int>(builder.must(call(SYS_fsopen, type, FSOPEN_CLOEXEC)));
  for (std::size_t i = 0; i < count; ++i) {
    if (options[i].key == nullptr) continue;
    const unsigned command = options[i].value != nullptr ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
    builder.must(call(SYS_fsconfig, context, command, options[i].key, options[i].value, 0));
  }
  builder.must(call(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
  const long made = builder.must(call(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes));
  ::close(context);
  return static_cast<int>(made);
}

}  // namespace sbx::child
