// Targets and file systems of the new root; see child_builder.hpp.

#include "spawn/child_builder.hpp"

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

int parent_folder(Builder& builder, const char* path, const char** name) {
  int folder =
      static_cast<int>(builder.must(open_beneath(builder.root, ".", O_PATH | O_DIRECTORY, 0)));
  const char* rest = path;
  for (const char* slash = std::strchr(rest, '/'); slash != nullptr;
       slash = std::strchr(rest, '/')) {
    char component[256];
    const auto length = static_cast<std::size_t>(slash - rest);
    if (length >= sizeof component) builder.give_up(ENAMETOOLONG);
    std::memcpy(component, rest, length);
    component[length] = '\0';
    int next = open_beneath(folder, component, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | kNoLinks);
    if (next < 0 && errno == ENOENT) {
      if (!may_make_in(builder, folder)) builder.give_up(EROFS);
      builder.must(::mkdirat(folder, component, 0755));
      next = open_beneath(folder, component, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | kNoLinks);
    }
    builder.must(next);
    ::close(folder);
    folder = next;
    rest = slash + 1;
  }
  *name = rest;
  return folder;
}

int open_target(Builder& builder, const char* path, bool is_folder) {
  const std::uint64_t flags = O_PATH | (is_folder ? O_DIRECTORY : 0U);
  const int there = open_beneath(builder.root, path, flags, RESOLVE_BENEATH | kNoLinks);
  if (there >= 0) return there;
  if (errno != ENOENT) builder.give_up(errno);
  const char* name = nullptr;
  const int folder = parent_folder(builder, path, &name);
  int made = open_beneath(folder, name, flags, RESOLVE_BENEATH | kNoLinks);
  if (made < 0 && errno == ENOENT) {
    if (!may_make_in(builder, folder)) builder.give_up(EROFS);
    if (is_folder) {
      builder.must(::mkdirat(folder, name, 0755));
    } else {
      const long file =
          ::openat(folder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
      ::close(static_cast<int>(builder.must(file)));
    }
    made = open_beneath(folder, name, flags, RESOLVE_BENEATH | kNoLinks);
  }
  ::close(folder);
  return static_cast<int>(builder.must(made));
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
