// Targets and file systems of the new root; see child_builder.hpp.

#include "spawn/child_builder.hpp"

#include <climits>
#include <cstring>

namespace sbx::child {
namespace {

/// Missing targets are never made in a live grant: that would write to the host.
bool may_make_in(const Builder& builder, int folder) {
  struct stat facts;
  if (::fstat(folder, &facts) != 0) return false;
  for (std::size_t i = 0; i < builder.own_count; ++i)
    if (builder.own[i] == facts.st_dev) return true;
  return false;
}

}  // namespace

int open_beneath(int folder, const char* path, std::uint64_t flags, std::uint64_t resolve) {
  const open_how how{.flags = flags | O_CLOEXEC, .mode = 0, .resolve = resolve};
  return static_cast<int>(call(SYS_openat2, folder, path, &how, sizeof how));
}

void remember_own(Builder& builder, int fd) {
  struct stat facts;
  if (::fstat(fd, &facts) == 0 && builder.own_count < kOwnFileSystems)
    builder.own[builder.own_count++] = facts.st_dev;
}

namespace {

int open_folder(int folder, const char* path) {
  return open_beneath(folder, path, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | kNoLinks);
}

/// mkdir -p below `folder`, component by component; `path` is cut at its slashes on the way.
int make_folders(const Builder& builder, char* path) {
  int folder =
      static_cast<int>(builder.must(open_beneath(builder.root, ".", O_PATH | O_DIRECTORY, 0)));
  for (char* component = path; component != nullptr;) {
    char* const slash = std::strchr(component, '/');
    if (slash != nullptr) *slash = '\0';
    int next = open_folder(folder, component);
    if (next < 0 && errno == ENOENT) {
      if (!may_make_in(builder, folder)) builder.give_up(EROFS);
      builder.must(::mkdirat(folder, component, 0755));
      next = open_folder(folder, component);
    }
    builder.must(next);
    ::close(folder);
    folder = next;
    component = slash != nullptr ? slash + 1 : nullptr;
  }
  return folder;
}

}  // namespace

int parent_folder(Builder& builder, const char* path, const char** name) {
  const char* const slash = std::strrchr(path, '/');
  *name = slash != nullptr ? slash + 1 : path;
  char parent[PATH_MAX] = ".";
  if (slash != nullptr) {
    const auto length = static_cast<std::size_t>(slash - path);
    if (length >= sizeof parent) builder.give_up(ENAMETOOLONG);
    std::memcpy(parent, path, length);
    parent[length] = '\0';
  }
  const int folder = open_folder(builder.root, parent);
  if (folder >= 0) return folder;
  if (errno != ENOENT) builder.give_up(errno);
  return make_folders(builder, parent);
}

/// Most targets are new: making comes first, opening what is there second.
int open_target(Builder& builder, const char* path, bool is_folder) {
  const char* name = nullptr;
  const int folder = parent_folder(builder, path, &name);
  int target = -1;
  if (may_make_in(builder, folder)) {
    if (!is_folder)
      target = ::openat(folder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    else
      (void)::mkdirat(folder, name, 0755);  // a failure shows when it is opened
  }
  if (target < 0)
    target = open_beneath(folder, name, O_PATH | (is_folder ? O_DIRECTORY : 0U),
                          RESOLVE_BENEATH | kNoLinks);
  if (target < 0 && errno == ENOENT) builder.give_up(EROFS);
  builder.must(target);
  ::close(folder);
  return target;
}

void attach(const Builder& builder, int tree, int target) {
  builder.must(call(SYS_move_mount, tree, "", target, "",
                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

void set_attributes(const Builder& builder, int tree, std::uint64_t attributes, bool recursive) {
  mount_attr change{};
  change.attr_set = attributes;
  change.propagation = kMsPrivate;
  builder.must(call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0),
                    &change, sizeof change));
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
