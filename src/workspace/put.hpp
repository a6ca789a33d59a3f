#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/copied.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "workspace/directory_lock.hpp"

/// Writing into directories of the host: each file is its old or its new self at every moment, and
/// no link is followed.
namespace sbx::workspace {

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

/// Who gets what is made in a directory; none: the caller, as if he had made it himself. Root fills
/// a directory that is one account's alone as that account would.
[[nodiscard]] std::optional<Owner> owner_in(const struct stat& directory);
/// The permissions of a copy of `wanted`: those of the file that it replaces; of a new one, what
/// `umask` leaves.
[[nodiscard]] mode_t mode_in_place(int directory, const std::string& name, mode_t wanted,
                                   mode_t umask);

/// A directory beneath `root`; directories that are missing are made. Errors: host.
[[nodiscard]] Result<UniqueFd> make_directory(int root, const std::string& path,
                                              std::optional<Owner> owner);

/// The bytes of one open file into another, empty one; holes stay holes, and where the file system
/// can, nothing is read. `is_cancelled` is asked now and then; may be empty. Errors: host (also
/// ECANCELED).
[[nodiscard]] Status copy_content(int from, int to, const Copied& copied,
                                  const std::function<bool()>& is_cancelled = {});

/// What must be under a name at the moment when it is replaced; else nothing is done and the error
/// has the code "replaced".
struct Expected {
  enum class What : std::uint8_t { anything, nothing, this_one };
  What what = What::anything;
  struct stat facts{};
};

class Temporary;

/// A file that is written under a temporary name and renamed when it is whole. Without finish()
/// nothing is left of it.
class NewFile {
 public:
  /// In `directory`, which must stay open as long as this. Errors: host.
  [[nodiscard]] static Result<NewFile> make(int directory, std::string name, mode_t mode = 0600);
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) noexcept;
  ~NewFile();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Takes the bits of `mode` that are permissions and nothing else. No owner: it stays the
  /// caller's. Errors: host.
  [[nodiscard]] Status finish(mode_t mode, std::optional<Owner> owner,
                              const Expected& expected = {});

 private:
  NewFile(std::unique_ptr<Temporary> temporary, std::string name, UniqueFd fd);
  std::unique_ptr<Temporary> temporary_;
  std::string name_;
  UniqueFd fd_;
};

/// A caller who may not change the owner keeps what he made. `name`: for messages. Errors: host,
/// where it had another owner.
[[nodiscard]] Status give_to(int file, Owner owner, const std::string& name);

/// Copies an open regular file to `name` in `directory` under a temporary name, then renames. A new
/// inode with the bits of `mode` that are permissions and nothing else. Errors: host.
[[nodiscard]] Status put_file(int source, int directory, const std::string& name, mode_t mode,
                              std::optional<Owner> owner, const Expected& expected = {},
                              const Copied& copied = {});
[[nodiscard]] Status put_link(const std::string& text, int directory, const std::string& name,
                              std::optional<Owner> owner, const Expected& expected = {});

/// ".sbx-" and 16 hexadecimal digits: what put_file and put_link write to first. A program's file
/// of such a name is never brought out. So in a directory of the host, such a file was left by a
/// killed sbx, or is being written.
[[nodiscard]] bool is_temporary(std::string_view name);
/// A new one.
[[nodiscard]] std::string temporary_name();
[[nodiscard]] bool has_temporary_name(std::string_view path);
inline constexpr const char* kTemporaryName = "a name that sbx itself uses while it writes";
/// Removes such files and links from a directory. Only while lock_directory() keeps others from
/// writing.
void remove_temporaries(int directory);
/// Removes such files from a directory without that lock: each whose maker is dead.
void remove_dead_temporaries(int directory);

}  // namespace sbx::workspace
