// The steps of a plan, one function per kind. Everything is reached by descriptor.

#include <cstring>
#include <initializer_list>
#include <iterator>

#include "spawn/child_builder.hpp"

namespace sbx::child {
namespace {

constexpr std::uint32_t kNullDevice = 0x103;  // st_rdev of /dev/null: 1:3

void write_content(const Builder& builder, int file, const Step& step) {
  for (std::size_t done = 0; done < step.content_size;)
    done += static_cast<std::size_t>(
        builder.must(::write(file, step.content + done, step.content_size - done)));
}

void add_entry(Builder& builder, const Step& step) {
  const char* name = nullptr;
  const int holder = parent_folder(builder, step.target, &name);
  if (step.kind == StepKind::directory) {
    if (!builder.folder.own || ::mkdirat(holder, name, 0755) != 0)
      ::close(open_target(builder, step.target, true));
    if (step.mode != 0755) builder.must(::fchmodat(holder, name, step.mode, 0));
  } else if (step.kind == StepKind::symlink) {
    builder.must(::symlinkat(step.source, holder, name));
  } else {
    const int file = static_cast<int>(builder.must(
        ::openat(holder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, step.mode)));
    write_content(builder, file, step);
    ::close(file);  // the mode is exact: PID 1's umask is 0
  }
}

/// The source as this mount namespace sees it: the parent's descriptors belong to another one,
/// where open_tree(CLONE) answers EINVAL. Device and inode must be what the parent decided on.
int open_source(const Builder& builder, const Step& step) {
  const int source =
      static_cast<int>(builder.must(open_beneath(AT_FDCWD, step.source, O_PATH, kNoLinks)));
  struct stat facts;
  builder.must(::fstat(source, &facts));
  if (facts.st_dev != step.device || facts.st_ino != step.inode) builder.give_up(ESTALE);
  return source;
}

int clone_source(const Builder& builder, const Step& step) {
  if (step.tree >= 0) return step.tree;  // made, and given its attributes, by the parent
  const int source = open_source(builder, step);
  const long tree = builder.must(
      call(SYS_open_tree, source, "", kCloneTree | (step.recursive ? AT_RECURSIVE : 0U)));
  ::close(source);
  return static_cast<int>(tree);
}

void add_bind(Builder& builder, const Step& step) {
  const int tree = clone_source(builder, step);
  if (step.tree < 0 && enter(builder.program, Stage::bind_attributes, builder.index))
    set_attributes(builder, tree, step.attributes, step.recursive);
  place(builder, tree, step.target, step.is_folder);
}

void append_number(char*& end, std::uint64_t number) {
  char digits[24];
  std::size_t count = 0;
  do digits[count++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  while (count > 0) *end++ = digits[--count];
  *end = '\0';
}

/// "/proc/self/fd/N": needs no escaping, and is accepted as a layer's name by every kernel
/// since 6.1.
void name_descriptor(char*& end, int fd) {
  static constexpr char kPrefix[] = "/proc/self/fd/";
  std::memcpy(end, kPrefix, sizeof kPrefix - 1);
  end += sizeof kPrefix - 1;
  append_number(end, static_cast<std::uint64_t>(fd));
}

int make_layer(const Builder& builder, int folder, const char* name) {
  builder.must(::mkdirat(folder, name, 0755));
  return static_cast<int>(
      builder.must(open_beneath(folder, name, O_PATH | O_DIRECTORY, RESOLVE_BENEATH)));
}

/// The merged root takes mode and times from the upper folder, so the upper is made like the source
/// first.
void imitate(const Builder& builder, int layer, int source) {
  struct stat facts;
  builder.must(::fstat(source, &facts));
  builder.must(::fchmodat(layer, ".", facts.st_mode & 07777, 0));
  const timespec times[2] = {facts.st_atim, facts.st_mtim};
  builder.must(::utimensat(layer, ".", times, 0));
}

void add_overlay(Builder& builder, const Step& step) {
  int target = open_target(builder, step.target, true);
  int source = -1;
  if (step.tree >=
      0) {  // an idmapped layer must be attached, at its final place; the overlay goes on top of it
    attach(builder, step.tree, target);
    ::close(target);
    source = target = open_target(builder, step.target, true);
  } else {
    source = open_source(builder, step);
  }

  char folder_name[24];
  char* end = folder_name;
  append_number(end, builder.overlays++);
  const int over = static_cast<int>(builder.must(
      open_beneath(builder.program.scratch, "over", O_PATH | O_DIRECTORY, RESOLVE_BENEATH)));
  const int folder = make_layer(builder, over, folder_name);
  const int upper = make_layer(builder, folder, "upper");
  imitate(builder, upper, source);

  char lower_text[128];
  char upper_text[64];
  char work_text[64];
  end = lower_text;
  Option options[] = {{"lowerdir", lower_text},
                      {nullptr, nullptr},
                      {nullptr, nullptr},
                      {"userxattr", nullptr},
                      {"xino", "off"}};
  int work = -1;
  if (step.read_only) {  // a second layer, empty: an overlay without an upper needs two
    name_descriptor(end, upper);
    *end++ = ':';
  } else {
    work = make_layer(builder, folder, "work");
    char* text = upper_text;
    name_descriptor(text, upper);
    text = work_text;
    name_descriptor(text, work);
    options[1] = {"upperdir", upper_text};
    options[2] = {"workdir", work_text};
  }
  name_descriptor(end, source);

  const int tree = make_file_system(builder, "overlay", options, step.attributes);
  attach(builder, tree, target);
  remember_own(builder, tree);
  for (const int fd : {tree, upper, work, folder, over, target})
    if (fd >= 0) ::close(fd);
  if (source != target) ::close(source);
}

/// Without NODEV, else opening it fails; a file of that name that is another device is refused.
int clone_device(const Builder& builder, const char* path, std::uint32_t number) {
  const int node = static_cast<int>(builder.must(open_beneath(AT_FDCWD, path, O_PATH, kNoLinks)));
  struct stat facts;
  builder.must(::fstat(node, &facts));
  if ((facts.st_mode & S_IFMT) != S_IFCHR || facts.st_rdev != number) builder.give_up(ENODEV);
  const int tree = static_cast<int>(builder.must(call(SYS_open_tree, node, "", kCloneTree)));
  ::close(node);
  set_attributes(builder, tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, false);
  return tree;
}

void add_device(Builder& builder, const Step& step) {
  const int tree = clone_device(builder, step.source, step.device_number);
  place(builder, tree, step.target, false);
}

void add_scratch(Builder& builder, const Step& step) {
  const int part = static_cast<int>(builder.must(open_beneath(
      builder.program.scratch, step.source, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | kNoLinks)));
  const int tree = static_cast<int>(builder.must(call(SYS_open_tree, part, "", kCloneTree)));
  set_attributes(builder, tree, step.attributes, false);
  place(builder, tree, step.target, true);
  ::close(part);
}

void add_proc(Builder& builder, const Step& step) {
  Program& program = builder.program;
  constexpr std::uint64_t kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (program
          .list_processes) {  // hidepid would hide a non-dumpable payload from whoever measures it
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
    const long setting =
        builder.must(::openat(tree, "sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC));
    builder.must(::write(static_cast<int>(setting), "0", 1));
    ::close(static_cast<int>(setting));
    builder.stage = Stage::proc;
  }
  place(builder, tree, step.target, true);
}

void add_devpts(Builder& builder, const Step& step) {
  const Option options[] = {{"newinstance", nullptr}, {"ptmxmode", "0666"}, {"mode", "0620"}};
  const int tree =
      make_file_system(builder, "devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  place(builder, tree, step.target, true);
}

/// Masks go over what this kernel has; a name that is absent needs none.
int open_masked(const Builder& builder, const Step& step) {
  const int target =
      open_beneath(builder.root, step.target, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | kNoLinks);
  if (target < 0 && errno != ENOENT) builder.give_up(errno);
  return target;
}

int make_mask(const Builder& builder, StepKind kind) {
  if (kind == StepKind::mask_file) return clone_device(builder, "/dev/null", kNullDevice);
  const Option options[] = {{"mode", "0555"}, {"size", "4k"}, {"nr_inodes", "1"}};
  return make_file_system(
      builder, "tmpfs", options,
      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

void add_mask(Builder& builder, const Step& step) {
  const int target = open_masked(builder, step);
  if (target < 0) return;
  // The first mask of a kind is made, the others are clones of it, flags included.
  int& first = step.kind == StepKind::mask_file ? builder.empty_file : builder.empty_folder;
  const bool make = first < 0;
  const int tree = make
                       ? make_mask(builder, step.kind)
                       : static_cast<int>(builder.must(call(SYS_open_tree, first, "", kCloneTree)));
  attach(builder, tree, target);
  if (make)
    first = tree;
  else
    ::close(tree);
  ::close(target);
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

/// A folder whose name must stay: renaming or removing a mount point is EBUSY.
void add_pinned(Builder& builder, const Step& step) {
  const int target = open_masked(builder, step);
  if (target < 0) return;
  const int tree =
      static_cast<int>(builder.must(call(SYS_open_tree, target, "", kCloneTree | AT_RECURSIVE)));
  attach(builder, tree, target);
  ::close(tree);
  ::close(target);
}

/// What the program sees in place of a file: made on the private tmpfs, out of everybody's reach but for this mount.
void add_content(Builder& builder, const Step& step) {
  const int target = open_masked(builder, step);
  if (target < 0) return;
  const int scratch = builder.program.scratch;
  char name[24] = "as-";
  char* end = name + 3;
  append_number(end, builder.index);
  const int file = static_cast<int>(
      builder.must(::openat(scratch, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444)));
  write_content(builder, file, step);
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
/// By StepKind.
constexpr Handler kHandlers[] = {
    {Stage::make_entry, add_entry}, {Stage::make_entry, add_entry},
    {Stage::make_entry, add_entry}, {Stage::bind, add_bind},
    {Stage::overlay, add_overlay},  {Stage::device, add_device},
    {Stage::bind, add_scratch},     {Stage::proc, add_proc},
    {Stage::devpts, add_devpts},    {Stage::mask, add_mask},
    {Stage::mask, add_mask},        {Stage::proc_read_only, add_read_only},
    {Stage::mask, add_pinned},      {Stage::mask, add_content},
};
static_assert(std::size(kHandlers) == static_cast<std::size_t>(StepKind::content) + 1);

}  // namespace

void add_step(Builder& builder, std::size_t index) {
  const Step& step = builder.program.steps[index];
  const Handler& handler = kHandlers[static_cast<std::size_t>(step.kind)];
  builder.index = index;
  builder.stage = handler.stage;
  if (!enter(builder.program, handler.stage, index)) return;
  handler.add(builder, step);
  if (handler.stage != Stage::make_entry) forget_folder(builder, step.target);
}

}  // namespace sbx::child
