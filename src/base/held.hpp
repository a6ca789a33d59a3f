#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Files and directories that another process may move or replace at any moment. Open what you
/// change, compare its identity, and act on the descriptor. Some calls take names only: here they
/// take the descriptor of a held directory and one name in it, so that a process that swaps this
/// name can't direct the call outside that directory. No other file of sbx makes these system calls
/// (tests/repo/check_by_name.py), except the child, which acts in the new root before any program
/// starts.
///
/// Functions that return bool set errno when they return false.
namespace sbx::held {

/// Which file it is, under whatever name. An inode number is given anew only after its file is
/// gone: hold a descriptor where that matters.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};
[[nodiscard]] inline Identity identity_of(const struct stat& facts) {
  return {facts.st_dev, facts.st_ino};
}
/// Of any open descriptor. Nothing when fstat(2) fails.
[[nodiscard]] std::optional<Identity> identity_of(int file);
/// The descriptor is of what the name in the directory means now; a link means itself.
[[nodiscard]] bool is_named(int directory, const std::string& name, int file);

/// Opens a path beneath `root`: no link is followed, no mount is crossed, `..` never leaves the
/// root. "." is the root itself. Opening never waits on a FIFO. Errors: host "cannot-open".
[[nodiscard]] Result<UniqueFd> open_beneath(int root, const std::string& path, int flags);
/// Opens one name of a held directory without following a link. openat(2): a sandbox's filter may
/// refuse openat2(2). Errors: host "cannot-open".
[[nodiscard]] Result<UniqueFd> open_name(int directory, const std::string& name, int flags);
/// Opens the same file again with other flags, such as an O_PATH descriptor for reading. Its mode
/// decides. Files other than directories need /proc. Errors: host "cannot-open".
[[nodiscard]] Result<UniqueFd> open_again(int file, int flags);

/// Changes of the file that a descriptor, O_PATH too, refers to. A symbolic link has no mode:
/// EOPNOTSUPP. For O_PATH, set_mode() needs Linux 6.6 or /proc.
[[nodiscard]] bool set_mode(int file, mode_t mode);
[[nodiscard]] bool set_owner(int file, uid_t uid, gid_t gid);
/// Access and modification time, as utimensat(2) takes them.
[[nodiscard]] bool set_times(int file, const timespec (&times)[2]);

/// Makes a directory, as mkdirat(2) does, and opens it for reading. What was opened is what was
/// made: it is empty, and belongs to the caller or to the owner of `directory`. Otherwise somebody
/// else's directory could be given away by what the caller does next. Errors: host "cannot-make"
/// with errno (EEXIST: the name is taken), "replaced".
[[nodiscard]] Result<UniqueFd> make_and_open(int directory, const std::string& name,
                                             mode_t mode = 0700);
/// Opens a directory by a path that the caller of sbx chose: its links are followed. Each directory
/// of it that is missing is made. Errors: host "cannot-make" of the first that can't be made or
/// opened, with errno.
[[nodiscard]] Result<UniqueFd> open_or_make_path(const std::string& path, mode_t mode);

/// Each `name` is one name in the directory: no slash, not empty, neither "." nor "..".
[[nodiscard]] bool make_directory(int directory, const std::string& name, mode_t mode);
[[nodiscard]] bool make_symlink(const std::string& text, int directory, const std::string& name);
[[nodiscard]] bool make_fifo(int directory, const std::string& name, mode_t mode);
/// The character device 0:0, which hides a name in the layers below an overlay.
[[nodiscard]] bool make_whiteout(int directory, const std::string& name);
/// A further name for an open file: one that was made without a name (O_TMPFILE), or one that has
/// names. Needs CAP_DAC_READ_SEARCH or /proc.
[[nodiscard]] bool link_file(int file, int directory, const std::string& name);

/// A file, link or special file: EISDIR or EPERM for a directory.
[[nodiscard]] bool remove_file(int directory, const std::string& name);
/// An empty directory.
[[nodiscard]] bool remove_directory(int directory, const std::string& name);

struct Name {
  int directory = -1;
  std::string name;
};
/// Renames, and replaces what has the new name.
[[nodiscard]] bool rename(const Name& from, const Name& to);
/// Renames to a free name: EEXIST when it is taken, EINVAL where the file system can't tell.
[[nodiscard]] bool rename_to_free(const Name& from, const Name& to);
/// Exchanges two names.
[[nodiscard]] bool exchange(const Name& first, const Name& second);

}  // namespace sbx::held
