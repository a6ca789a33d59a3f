#pragma once

#include <cstdint>

namespace sbx {

/// One step of building the new root; the second word is its name in `--dry-run --json`, the third
/// its type in plan/mount.hpp. The plan, the child and the record share this list: a kind that one
/// of them forgets does not compile.
#define SBX_MOUNT_KINDS(KIND)                                                                     \
  KIND(directory, "directory", Directory) /* mkdir -p target, mode `mode` */                      \
  KIND(symlink, "symlink", Symlink)       /* target -> source (text) */                           \
  KIND(file, "file", File)                /* a file with `content`, mode `mode` */                \
  KIND(bind, "bind", Bind)                /* source (host path) at target */                      \
  KIND(overlay, "overlay", Overlay) /* source (host directory) at target through overlayfs: */    \
                                    /* writes go to the private disk, or nowhere if read_only */  \
  KIND(device, "device", Device)    /* the host's character device `source`, checked against */   \
                                    /* device_number */                                           \
  KIND(scratch, "scratch", Scratch) /* the directory `source` of the private disk */              \
                                    /* (base/private_disk.hpp) at target */                       \
  KIND(proc, "proc", Proc)          /* a procfs of the sandbox's own, hidepid=ptraceable */       \
  KIND(outer_proc, "outer-proc", OuterProc) /* the caller's /proc with all that is mounted in */  \
                                            /* it, read-only; Landlock opens a few files of it */ \
  KIND(devpts, "devpts", Devpts)            /* a devpts of the sandbox's own */                   \
  KIND(mask_file, "mask-file", MaskFile)    /* /dev/null over target, when it exists */           \
  KIND(mask_directory, "mask-directory",                                                          \
       MaskDirectory) /* an empty read-only directory over target, when it exists */              \
  KIND(read_only, "read-only", ReadOnly) /* target (a path below an earlier mount) is bound on */ \
                                         /* itself read-only, when it exists */                   \
  KIND(pinned, "pinned", Pinned)    /* target, a directory in a live grant, is bound on itself */ \
                                    /* as it is: a mount point can't be renamed away (EBUSY) */   \
  KIND(content, "content", Content) /* a read-only file with `content`, perhaps empty, over */    \
                                    /* target, when it exists */                                  \
  KIND(copy, "copy", Copy)          /* a copy of the directory `source` at target, made on the */ \
                                    /* private disk */

enum class MountKind : std::uint8_t {
#define SBX_MOUNT_KIND(kind, name, Type) kind,
  SBX_MOUNT_KINDS(SBX_MOUNT_KIND)
#undef SBX_MOUNT_KIND
};

[[nodiscard]] constexpr const char* name_of(MountKind kind) {
  switch (kind) {
#define SBX_MOUNT_KIND(kind, name, Type) \
  case MountKind::kind:                  \
    return name;
    SBX_MOUNT_KINDS(SBX_MOUNT_KIND)
#undef SBX_MOUNT_KIND
  }
  return "";
}

}  // namespace sbx
