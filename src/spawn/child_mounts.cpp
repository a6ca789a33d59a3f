// The steps of a plan, one function per kind. All access is by descriptor.

#include <cstring>
#include <initializer_list>
#include <iterator>

#include "base/private_disk.hpp"
#include "spawn/child_builder.hpp"

namespace sbx::child {
namespace {

constexpr std::uint32_t kNullDevice = 0x103;  // st_rdev of /dev/null: 1:3

void add_entry(Builder& builder, const Step& step) {
  const char* name = nullptr;
  const int holder = parent_directory(builder, step.target, &name);
  if (step.kind == MountKind::directory) {
    if (!builder.directory.own || ::mkdirat(holder, name, 0755) != 0)
      ::close(open_target(builder, step.target, true));
    if (step.mode != 0755) builder.must(::fchmodat(holder, name, step.mode, 0));
  } else if (step.kind == MountKind::symlink) {
    builder.must(::symlinkat(step.source, holder, name));
  } else {
    const int file = static_cast<int>(builder.must(
        ::openat(holder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, step.mode)));
    write_content(builder, file, step.content, step.content_size);
    ::close(file);  // exact mode: PID 1's umask is 0
  }
}

void add_bind(Builder& builder, const Step& step) {
  // The parent's trees have their attributes already.
  const bool is_made = builder.tree() >= 0;
  const int tree =
      is_made ? builder.tree()
              : clone_source(builder, step.source, step.recursive, step.device, step.inode);
  if (!is_made && enter(builder.program, Stage::bind_attributes, builder.index))
    set_attributes(builder, tree, step.attributes, step.recursive);
  place(builder, tree, step.target, step.is_directory);
}

/// Without NODEV, which would make opening the device fail. Refuses a file of that name that is
/// another device.
int clone_device(Builder& builder, const char* path, std::uint32_t number) {
  struct stat facts;
  const int tree = clone_path(builder, path, false, facts);
  if ((facts.st_mode & S_IFMT) != S_IFCHR || facts.st_rdev != number) builder.give_up(ENODEV);
  set_attributes(builder, tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, false);
  return tree;
}

void add_device(Builder& builder, const Step& step) {
  const int tree = clone_device(builder, step.source, step.device_number);
  place(builder, tree, step.target, false);
}

/// One of filesystem.private, which few policies have.
bool is_own(const char* directory) {
  for (const char* each = private_disk::kOwn; *each != '\0'; ++each, ++directory)
    if (*each != *directory) return false;
  return true;
}

void add_scratch(Builder& builder, const Step& step) {
  if (is_own(step.source)) builder.must(::mkdirat(builder.program.scratch, step.source, 0755));
  const int part = static_cast<int>(builder.must(open_beneath(
      builder.program.scratch, step.source, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | kNoLinks)));
  const int tree = static_cast<int>(builder.must(call(SYS_open_tree, part, "", kCloneTree)));
  set_attributes(builder, tree, step.attributes, false);
  remember_own(builder, tree);
  place(builder, tree, step.target, true);
  ::close(part);
}

/// A limit of the sandbox's user namespace, namespaces(7).
struct UserLimit {
  const char* file;
  const char* value;
};

/// Each level of user namespaces counts them, the caller's too: without a limit one program takes
/// all of the caller's.
constexpr UserLimit kInotify[] = {{"sys/user/max_inotify_instances", "64"},
                                  {"sys/user/max_inotify_watches", "32768"}};

void set_user_limit(const Builder& builder, int proc, const UserLimit& limit) {
  const int setting = ::openat(proc, limit.file, O_WRONLY | O_CLOEXEC);
  if (setting < 0 && errno == ENOENT) return;
  builder.must(setting);
  builder.must(::write(setting, limit.value, std::strlen(limit.value)));
  ::close(setting);
}

void add_proc(Builder& builder, const Step& step) {
  Program& program = builder.program;
  constexpr std::uint64_t kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (program.list_processes) {  // hidepid would hide a non-dumpable payload from the supervisor's
                                 // measurements
    const Option plain[] = {{nullptr, nullptr}};
    const int whole = make_file_system(builder, "proc", plain, kAttributes);
    program.processes =
        static_cast<int>(builder.must(::openat(whole, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    ::close(whole);
  }
  const Option options[] = {{"hidepid", "ptraceable"}};
  const int tree = make_file_system(builder, "proc", options, kAttributes);
  if (enter(program, Stage::nested_namespaces)) {
    builder.stage = Stage::nested_namespaces;
    set_user_limit(builder, tree, {"sys/user/max_user_namespaces", "0"});
    builder.stage = Stage::proc;
  }
  // Kernels without inotify have no such file.
  if (program.role != Role::call)
    for (const UserLimit& each : kInotify) set_user_limit(builder, tree, each);
  place(builder, tree, step.target, true);
}

/// Recursive: what hides parts of it is locked to it, mount_namespaces(7).
void add_outer_proc(Builder& builder, const Step& step) {
  struct stat facts;
  const int tree = clone_path(builder, "/proc", true, facts);
  set_attributes(builder, tree,
                 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                 true);
  place(builder, tree, step.target, true);
}

void add_devpts(Builder& builder, const Step& step) {
  // Without a bound one instance takes all terminals of the machine, kernel.pty.max.
  const Option options[] = {
      {"newinstance", nullptr}, {"ptmxmode", "0666"}, {"mode", "0620"}, {"max", "64"}};
  const int tree =
      make_file_system(builder, "devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  place(builder, tree, step.target, true);
}

/// Masks a path if this kernel has it; a missing path needs no mask.
int open_masked(const Builder& builder, const Step& step) {
  const int target =
      open_beneath(builder.root, step.target, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | kNoLinks);
  if (target < 0 && errno != ENOENT) builder.give_up(errno);
  return target;
}

int make_mask(Builder& builder, MountKind kind) {
  if (kind == MountKind::mask_file) return clone_device(builder, "/dev/null", kNullDevice);
  // A separate file system would cost 60 us at each start and end.
  const int tree =
      static_cast<int>(builder.must(call(SYS_open_tree, builder.covered, "", kCloneTree)));
  set_attributes(builder, tree,
                 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                 false);
  return tree;
}

bool lies_in(const char* path, const char* directory) {
  while (*directory != '\0' && *path == *directory) {
    ++path;
    ++directory;
  }
  return *directory == '\0';
}

/// The target of a mask.
struct MaskPlace {
  int directory;
  const char* name;  ///< empty: `directory` is the target itself, closed by the caller
};

/// False if this kernel has no such path.
bool find_masked(Builder& builder, const Step& step, MaskPlace& place) {
  if (!lies_in(step.target, "proc/")) {
    place = {open_masked(builder, step), ""};
    return place.directory >= 0;
  }
  place.directory =
      existing_parent(builder, step.target, &place.name);  // the sandbox's own: no links
  if (place.directory < 0) return false;
  if (call(SYS_faccessat, place.directory, place.name, F_OK) == 0) return true;
  if (errno != ENOENT) builder.give_up(errno);
  return false;
}

/// The place comes first: a mount that nothing is attached to waits for an RCU grace period when it
/// is closed.
void add_mask_of(Builder& builder, const Step& step, MountKind kind) {
  MaskPlace place{};
  if (!find_masked(builder, step, place)) return;
  // The first mask of a kind is made, the others are clones of it, flags included.
  int& first = kind == MountKind::mask_file ? builder.empty_file : builder.empty_directory;
  const int tree = first < 0
                       ? make_mask(builder, kind)
                       : static_cast<int>(builder.must(call(SYS_open_tree, first, "", kCloneTree)));
  if (*place.name != '\0') {
    attach_at(builder, tree, place.directory, place.name);
  } else {
    attach(builder, tree, place.directory);
    ::close(place.directory);
  }
  if (first < 0)
    first = tree;  // only an attached mount can be cloned
  else
    ::close(tree);
}

void add_mask(Builder& builder, const Step& step) {
  add_mask_of(builder, step, step.kind);
}

void add_read_only(Builder& builder, const Step& step) {
  const int target = open_masked(builder, step);
  if (target < 0) return;
  const int tree =
      static_cast<int>(builder.must(call(SYS_open_tree, target, "", kCloneTree | AT_RECURSIVE)));
  set_attributes(builder, tree, step.attributes | MOUNT_ATTR_RDONLY, true);
  attach(builder, tree, target);
  ::close(tree);
  ::close(target);
}

/// Pins a directory's name: renaming or removing a mount point fails with EBUSY.
void add_pinned(Builder& builder, const Step& step) {
  const int target = open_masked(builder, step);
  if (target < 0) return;
  const int tree =
      static_cast<int>(builder.must(call(SYS_open_tree, target, "", kCloneTree | AT_RECURSIVE)));
  attach(builder, tree, target);
  ::close(tree);
  ::close(target);
}

/// Shows synthetic content in place of a file: created on the private tmpfs, reachable only through
/// this mount.
void add_content(Builder& builder, const Step& step) {
  const int target = open_masked(builder, step);
  if (target < 0) return;
  struct stat facts;
  builder.must(::fstat(target, &facts));
  if (S_ISDIR(facts.st_mode)) {  // made since the plan was: a file can't be mounted on it
    ::close(target);
    return add_mask_of(builder, step, MountKind::mask_directory);
  }
  const int scratch = builder.program.scratch;
  char name[24] = "as-";
  char* end = name + 3;
  append_number(end, builder.index);
  const int file = static_cast<int>(
      builder.must(::openat(scratch, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444)));
  write_content(builder, file, step.content, step.content_size);
  ::close(file);
  const int node = static_cast<int>(builder.must(open_beneath(scratch, name, O_PATH, kNoLinks)));
  const int tree = static_cast<int>(builder.must(call(SYS_open_tree, node, "", kCloneTree)));
  set_attributes(builder, tree,
                 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                 false);
  attach(builder, tree, target);
  ::close(tree);
  ::close(node);
  ::close(target);
}

struct Handler {
  Stage stage;
  void (*add)(Builder&, const Step&);
};
constexpr Handler handler_of(MountKind kind) {
  switch (kind) {
    case MountKind::directory:
    case MountKind::symlink:
    case MountKind::file:
      return {Stage::make_entry, add_entry};
    case MountKind::bind:
      return {Stage::bind, add_bind};
    case MountKind::overlay:
      return {Stage::overlay, add_overlay};
    case MountKind::device:
      return {Stage::device, add_device};
    case MountKind::scratch:
      return {Stage::bind, add_scratch};
    case MountKind::proc:
      return {Stage::proc, add_proc};
    case MountKind::outer_proc:
      return {Stage::proc, add_outer_proc};
    case MountKind::devpts:
      return {Stage::devpts, add_devpts};
    case MountKind::mask_file:
    case MountKind::mask_directory:
      return {Stage::mask, add_mask};
    case MountKind::read_only:
      return {Stage::proc_read_only, add_read_only};
    case MountKind::pinned:
      return {Stage::mask, add_pinned};
    case MountKind::content:
      return {Stage::mask, add_content};
    case MountKind::copy:
      return {Stage::overlay, add_copy};
  }
  return {Stage::make_entry, add_entry};
}

}  // namespace

void add_step(Builder& builder, std::size_t index) {
  const Step& step = builder.program.steps[index];
  const Handler handler = handler_of(step.kind);
  builder.index = step.number;
  builder.stage = handler.stage;
  if (!enter(builder.program, handler.stage, step.number)) return;
  handler.add(builder, step);
  if (handler.stage != Stage::make_entry) forget_directory(builder, step.target);
}

}  // namespace sbx::child
