// The new root: created under the old one, filled by child_mounts.cpp, then entered. Creating
// targets follows no links, so a link planted by an earlier run has no effect.

#include <initializer_list>

#include "spawn/child_builder.hpp"
#include "spawn/child_stages.hpp"

namespace sbx::child {
namespace {

constexpr unsigned long kMsRec = 16384;  // MS_REC
constexpr int kMntDetach = 2;            // MNT_DETACH
constexpr char kStaging[] =
    ".scratch";  ///< attachment point of the private tmpfs while the root is built

void make_root(Builder& builder) {
  const Program& program = builder.program;
  if (enter(program, Stage::private_mounts))
    child::must(program, Stage::private_mounts, 0,
                ::mount(nullptr, "/", nullptr, kMsRec | kMsPrivate, nullptr));
  if (!enter(program, Stage::root)) return;
  const Option options[] = {{"mode", "0755"}, {"size", "16m"}, {"nr_inodes", "20000"}};
  builder.root = make_file_system(builder, "tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  remember_own(builder, builder.root);
  // Attached on top of "/": lookups from this process's root don't see it, so every host path stays
  // reachable meanwhile.
  builder.must(call(SYS_move_mount, builder.root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
  builder.must(::mkdirat(builder.root, "proc", 0555));
  builder.covered = static_cast<int>(
      builder.must(open_beneath(builder.root, "proc", O_PATH | O_DIRECTORY, kNoLinks)));
}

int open_scratch(Builder& builder) {
  const Program& program = builder.program;
  constexpr std::uint64_t kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (program.channels.scratch_tree >= 0) {
    set_attributes(builder, program.channels.scratch_tree, kAttributes, false);
    return program.channels.scratch_tree;
  }
  if (program.scratch_directory.get() == nullptr) {
    const Option options[] = {
        {"mode", "0755"}, {"size", program.scratch_size}, {"nr_inodes", program.scratch_inodes}};
    return make_file_system(builder, "tmpfs", options, kAttributes);
  }
  const int tree = clone_source(builder, program.scratch_directory, false, program.scratch_device,
                                program.scratch_inode);
  set_attributes(builder, tree, kAttributes, false);
  return tree;
}

void make_scratch(Builder& builder) {
  builder.stage = Stage::scratch;
  Program& program = builder.program;
  if (!enter(program, Stage::scratch)) return;
  program.scratch = open_scratch(builder);
  remember_own(builder, program.scratch);
  builder.must(::mkdirat(builder.root, kStaging, 0700));
  builder.must(
      call(SYS_move_mount, program.scratch, "", builder.root, kStaging, MOVE_MOUNT_F_EMPTY_PATH));
  builder.must(::mkdirat(program.scratch, private_disk::kOverlays, 0700));
  for (const char* name : {private_disk::kTmp, private_disk::kShm}) {
    builder.must(::mkdirat(program.scratch, name, 0755));
    builder.must(::fchmodat(program.scratch, name, 01777, 0));  // mkdirat is subject to the umask
  }
  builder.must(::mkdirat(program.scratch, private_disk::kHome, 0755));
  builder.must(::mkdirat(program.scratch, private_disk::kWorkspace, 0755));
}

/// Moves the scratch mount into the old root, which is unmounted as a whole: a separate unmount
/// would wait for another RCU grace period. It goes onto the host's /proc, which exists
/// (host::probe() read it) and is no longer needed.
void hide_scratch(Builder& builder) {
  builder.stage = Stage::scratch_hidden;
  if (!enter(builder.program, Stage::scratch_hidden)) return;
  builder.must(call(SYS_move_mount, builder.root, kStaging, AT_FDCWD, "/proc", 0U));
  builder.must(::unlinkat(builder.root, kStaging, AT_REMOVEDIR));
}

void enter_root(Builder& builder) {
  const Program& program = builder.program;
  builder.stage = Stage::root_read_only;
  if (enter(program, Stage::root_read_only))
    set_attributes(builder, builder.root, MOUNT_ATTR_RDONLY, false);
  builder.stage = Stage::pivot;
  if (!enter(program, Stage::pivot)) return;
  builder.must(::fchdir(builder.root));
  builder.must(call(SYS_pivot_root, ".",
                    "."));  // the old root now lies on top of the new one, pivot_root(2)
  builder.stage = Stage::old_root;
  if (enter(program, Stage::old_root)) builder.must(::umount2(".", kMntDetach));
  builder.must(::chdir("/"));
  ::close(builder.root);
}

/// Masks of the held sandbox's /proc serve once more: they stay attached, though the new procfs
/// covers them, and only an attached mount can be cloned.
void find_masks(Builder& builder) {
  const Program& program = builder.program;
  builder.stage = Stage::mask;
  for (std::size_t i = 0; i < program.step_count; ++i) {
    const Step& step = program.steps[i];
    int* const mask = step.kind == MountKind::mask_file        ? &builder.empty_file
                      : step.kind == MountKind::mask_directory ? &builder.empty_directory
                                                               : nullptr;
    if (mask == nullptr || *mask >= 0) continue;
    builder.index = step.number;
    *mask =
        open_beneath(builder.root, step.target, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | kNoLinks);
    if (*mask < 0 && errno != ENOENT) builder.give_up(errno);
  }
}

void close_directories(const Builder& builder) {
  for (const int fd : {builder.covered, builder.empty_directory, builder.empty_file,
                       builder.directory.fd, builder.source_directory.fd})
    if (fd >= 0) ::close(fd);
}

}  // namespace

void renew_mounts(Program& program) {
  ::umask(0);
  Builder builder{.program = program};
  builder.root = static_cast<int>(builder.must(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)));
  find_masks(builder);
  for (std::size_t i = 0; i < program.step_count; ++i) add_step(builder, i);
  close_directories(builder);
  ::close(builder.root);
}

void build_root(Program& program) {
  ::umask(0);
  Builder builder{.program = program};
  make_root(builder);
  make_scratch(builder);
  for (std::size_t i = 0; i < program.step_count; ++i) add_step(builder, i);
  hide_scratch(builder);
  enter_root(builder);
  close_directories(builder);
}

}  // namespace sbx::child
