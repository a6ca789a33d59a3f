// Granted directories through overlayfs: a private layer for writes, one for hidden names, and below both the host's
// directory.

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

int make_layer(const Builder& builder, int folder, const char* name) {
  builder.must(::mkdirat(folder, name, 0755));
  return static_cast<int>(
      builder.must(open_beneath(folder, name, O_PATH | O_DIRECTORY, RESOLVE_BENEATH)));
}

/// Gives the upper directory the source's mode and times: the merged root takes them from it.
void imitate(const Builder& builder, int layer, int source) {
  struct stat facts;
  builder.must(::fstat(source, &facts));
  builder.must(::fchmodat(layer, ".", facts.st_mode & 07777, 0));
  const timespec times[2] = {facts.st_atim, facts.st_mtim};
  builder.must(::utimensat(layer, ".", times, 0));
}

/// Copies mode, owner and times of a name below. If the name is gone, or has no id here, the new one stays as
/// created.
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

/// The marker for a hidden name. In an overlay layer it is a whiteout: since Linux 5.8 the device 0:0 needs no
/// privilege, mknod(2). Beside a copy, which only sbx reads, it is a FIFO: the private disk may lie on an overlay
/// then, which holds no whiteouts before Linux 6.7.
mode_t hiding(const Step& step) {
  return step.kind == MountKind::copy ? S_IFIFO : S_IFCHR;
}

void add_veil(const Builder& builder, int layer, const Veil& veil, mode_t hiding) {
  switch (veil.kind) {
    case VeilKind::folder:
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
  const int folder = make_layer(builder, over, name);
  ::close(over);
  return folder;
}

/// Fills the hiding layer with whiteouts, and the directories above them. Unlike a mask mounted over the name, it
/// hides the name whatever the host puts there.
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

  const int folder = make_place(builder, step);
  const int upper = make_layer(builder, folder, private_disk::kUpper);
  imitate(builder, upper, source);
  int veil = -1;
  if (step.veil_count > 0) {
    veil = make_layer(builder, folder, private_disk::kVeil);
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
    work = make_layer(builder, folder, private_disk::kOverlayWork);
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
  for (const int fd : {tree, upper, veil, work, folder, target})
    if (fd >= 0) ::close(fd);
  if (source != target) ::close(source);
}

void add_copy(Builder& builder, const Step& step) {
  const int target = open_target(builder, step.target, true);
  const int folder = make_place(builder, step);
  const int upper = make_layer(builder, folder, private_disk::kUpper);
  if (step.veil_count > 0) {  // read by the parent, which fills the copy
    const int veil = make_layer(builder, folder, private_disk::kVeil);
    fill_veil(builder, veil, -1, step);
    ::close(veil);
  }
  const int tree = static_cast<int>(builder.must(call(SYS_open_tree, upper, "", kCloneTree)));
  set_attributes(builder, tree, step.attributes, false);
  remember_own(builder, tree);
  attach(builder, tree, target);
  for (const int fd : {tree, upper, folder, target}) ::close(fd);
}

}  // namespace sbx::child
