// Granted directories through overlayfs: a private layer for writes, one for hidden names, and
// below both the host's directory.

#include <time.h>
#include <cstring>
#include <initializer_list>

#include "spawn/child_builder.hpp"

namespace sbx::child {
namespace {

/// "/proc/self/fd/N": needs no escaping, and every kernel since 6.1 accepts it as a layer's name.
void name_descriptor(char*& end, int fd) {
  static constexpr char kPrefix[] = "/proc/self/fd/";
  std::memcpy(end, kPrefix, sizeof kPrefix - 1);
  end += sizeof kPrefix - 1;
  append_number(end, static_cast<std::uint64_t>(fd));
}

int make_layer(const Builder& builder, int directory, const char* name) {
  builder.must(::mkdirat(directory, name, 0755));
  return static_cast<int>(
      builder.must(open_beneath(directory, name, O_PATH | O_DIRECTORY, RESOLVE_BENEATH)));
}

/// Gives the upper directory the source's mode and times: the merged root takes them from it.
void imitate(const Builder& builder, int layer, int source) {
  struct stat facts;
  builder.must(::fstat(source, &facts));
  builder.must(::fchmodat(layer, ".", facts.st_mode & 07777, 0));
  const timespec times[2] = {facts.st_atim, facts.st_mtim};
  builder.must(::utimensat(layer, ".", times, 0));
}

/// Copies mode, owner and times of a name below. If the name is gone, or has no id here, the new
/// one stays as created.
void imitate_below(const Builder& builder, int layer, int source, const char* path) {
  const int below =
      open_beneath(source, path, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
  struct stat facts;
  if (below < 0) return;
  builder.must(::fstat(below, &facts));
  ::close(below);
  (void)::fchownat(layer, path, facts.st_uid, facts.st_gid, AT_SYMLINK_NOFOLLOW);
  builder.must(::fchmodat(layer, path, facts.st_mode & 07777, 0));
  const timespec times[2] = {facts.st_atim, facts.st_mtim};
  builder.must(::utimensat(layer, path, times, AT_SYMLINK_NOFOLLOW));
}

/// The marker for a hidden name. In an overlay layer it is a whiteout: since Linux 5.8 the device
/// 0:0 needs no privilege, mknod(2). Beside a copy, which only sbx reads, it is a FIFO: the private
/// disk may lie on an overlay then, which holds no whiteouts before Linux 6.7.
mode_t hiding(const Step& step) {
  return step.kind == MountKind::copy ? S_IFIFO : S_IFCHR;
}

void add_veil(const Builder& builder, int layer, const Veil& veil, mode_t hiding) {
  switch (veil.kind) {
    case VeilKind::directory:
      builder.must(::mkdirat(layer, veil.path, 0755));
      return;
    case VeilKind::hidden:
      builder.must(::mknodat(layer, veil.path, hiding, 0));
      return;
    case VeilKind::content: {
      const int file = static_cast<int>(
          builder.must(::openat(layer, veil.path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)));
      write_content(builder, file, veil.content, veil.content_size);
      ::close(file);
      return;
    }
  }
}

/// The private disk's directory for one granted directory.
int make_place(Builder& builder, const Step& step) {
  char name[24];
  char* end = name;
  append_number(end, step.disk_place);
  const int over = static_cast<int>(builder.must(open_beneath(
      builder.program.scratch, private_disk::kOverlays, O_PATH | O_DIRECTORY, RESOLVE_BENEATH)));
  const int directory = make_layer(builder, over, name);
  ::close(over);
  return directory;
}

/// Fills the hiding layer with whiteouts, and the directories above them. Unlike a mask mounted
/// over the name, it hides the name whatever the host puts there.
void fill_veil(Builder& builder, int layer, int source, const Step& step) {
  builder.stage = Stage::veil;
  if (enter(builder.program, Stage::veil, builder.index)) {
    for (std::size_t i = 0; i < step.veil_count; ++i)
      add_veil(builder, layer, step.veils[i], hiding(step));
    // Children first: creating a name in a directory changes the directory's times.
    for (std::size_t i = step.veil_count; i > 0 && source >= 0; --i)
      if (step.veils[i - 1].kind != VeilKind::hidden)
        imitate_below(builder, layer, source, step.veils[i - 1].path);
  }
  builder.stage = Stage::overlay;
}

/// A directory through the overlay; -1 if it is gone, or not one any more.
int open_merged(int overlay, const char* path, std::uint64_t flags) {
  return open_beneath(overlay, path, flags | O_DIRECTORY | O_NOFOLLOW,
                      RESOLVE_BENEATH | RESOLVE_NO_XDEV | kNoLinks);
}

/// O_PATH of a name, if it is still one of that file. As long as it is open, the overlay finds this
/// file under the name, whatever the host puts there. What is not written yet has the inode number
/// of the layer below.
int open_linked(int directory, const LinkedName& name) {
  const int file = ::openat(directory, name.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat facts;
  if (file < 0) return -1;
  if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_ino == name.inode &&
      (facts.st_mode & (S_ISUID | S_ISGID)) == 0)
    return file;
  ::close(file);
  return -1;
}

/// Making names changes the times of their directories.
void put_times_back(int overlay, int source, const Step& step) {
  const char* last = nullptr;
  for (std::size_t i = 0; i < step.linked_count; ++i) {
    const char* path = step.linked[i].directory;
    if (path == last) continue;
    last = path;
    const int directory = open_merged(overlay, path, O_RDONLY);
    const int below = open_merged(source, path, O_PATH);
    struct stat facts;
    if (directory >= 0 && below >= 0 && ::fstat(below, &facts) == 0) {
      const timespec times[2] = {facts.st_atim, facts.st_mtim};
      (void)::utimensat(directory, ".", times, 0);  // times only
    }
    for (const int fd : {directory, below})
      if (fd >= 0) ::close(fd);
  }
}

/// Nothing that is made from now on has a ctime of before: file systems stamp by this clock's
/// ticks.
void wait_for_tick() {
  timespec before;
  timespec now;
  const timespec pause = {0, 1'000'000};
  (void)call(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &before);
  do {
    (void)call(SYS_nanosleep, &pause, nullptr);
    (void)call(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &now);
  } while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

/// An overlay copies a file up under one name, and the others keep the old one. So the others are
/// removed, and made names of the copy. All of it is done through the overlay: what is hidden is
/// not found, the kernel copies attributes and directories, and holes stay holes. A name that
/// another process of the host takes meanwhile is left as it is.
void link_names(const Builder& builder, int overlay, int source, int place, const Step& step) {
  int first_directory = -1;
  int first_file = -1;
  const LinkedName* first = nullptr;
  const auto forget_first = [&] {
    if (first == nullptr) return;
    ::close(first_directory);
    ::close(first_file);
    first = nullptr;
  };
  for (std::size_t i = 0; i < step.linked_count; ++i) {
    const LinkedName& name = step.linked[i];
    if (name.is_first) forget_first();
    const int directory = open_merged(overlay, name.directory, O_PATH);
    const int file = directory < 0 ? -1 : open_linked(directory, name);
    if (file >= 0 && first == nullptr) {
      first = &name;
      first_directory = directory;
      first_file = file;
      continue;
    }
    // An immutable file has no other name removed, and can't be written either.
    if (file >= 0 && ::unlinkat(directory, name.name, 0) == 0)
      builder.must(::linkat(first_directory, first->name, directory, name.name, 0));
    for (const int fd : {file, directory})
      if (fd >= 0) ::close(fd);
  }
  forget_first();
  put_times_back(overlay, source, step);
  wait_for_tick();
  builder.must(::mkdirat(place, private_disk::kLinked, 0700));
}

}  // namespace

void add_overlay(Builder& builder, const Step& step) {
  int target = open_target(builder, step.target, true);
  int source = -1;
  if (builder.tree() >= 0) {
    // An idmapped layer must be attached, at its final place; the overlay goes on top of it.
    attach(builder, builder.tree(), target);
    ::close(target);
    source = target = open_target(builder, step.target, true);
  } else {
    source = open_source(builder, step);
  }

  const int directory = make_place(builder, step);
  const int upper = make_layer(builder, directory, private_disk::kUpper);
  imitate(builder, upper, source);
  int veil = -1;
  if (step.veil_count > 0) {
    veil = make_layer(builder, directory, private_disk::kVeil);
    fill_veil(builder, veil, source, step);
    imitate(builder, veil, source);
  }

  char lower_text[128];
  char upper_text[64];
  char work_text[64];
  char* end = lower_text;
  Option options[] = {{"lowerdir", lower_text},
                      {nullptr, nullptr},
                      {nullptr, nullptr},
                      {"userxattr", nullptr},
                      {"xino", "off"}};
  int work = -1;
  if (veil >= 0 || step.read_only) {  // an overlay without an upper directory needs two layers
    name_descriptor(end, veil >= 0 ? veil : upper);
    *end++ = ':';
  }
  if (!step.read_only) {
    work = make_layer(builder, directory, private_disk::kOverlayWork);
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
  if (step.linked_count > 0 && !step.read_only) link_names(builder, tree, source, directory, step);
  for (const int fd : {tree, upper, veil, work, directory, target})
    if (fd >= 0) ::close(fd);
  if (source != target) ::close(source);
}

void add_copy(Builder& builder, const Step& step) {
  const int target = open_target(builder, step.target, true);
  const int directory = make_place(builder, step);
  const int upper = make_layer(builder, directory, private_disk::kUpper);
  if (step.veil_count > 0) {  // read by the parent, which fills the copy
    const int veil = make_layer(builder, directory, private_disk::kVeil);
    fill_veil(builder, veil, -1, step);
    ::close(veil);
  }
  const int tree = static_cast<int>(builder.must(call(SYS_open_tree, upper, "", kCloneTree)));
  set_attributes(builder, tree, step.attributes, false);
  remember_own(builder, tree);
  attach(builder, tree, target);
  for (const int fd : {tree, upper, directory, target}) ::close(fd);
}

}  // namespace sbx::child
