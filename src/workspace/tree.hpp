#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Reads trees that an untrusted program wrote: by descriptor, beneath a root, never through a
/// link, never into another mount. Paths are relative to the root; "." is the root.
namespace sbx::workspace {

struct Entry {
  std::string name;
  struct stat facts{};
};

/// Errors: host.
[[nodiscard]] Result<UniqueFd> open_directory(int root, const std::string& path);
/// A regular file there, for reading. Never waits on a FIFO. Errors: host.
[[nodiscard]] Result<UniqueFd> open_file(int root, const std::string& path);

/// Lends permissions to a held file, and puts its mode back at the end, unless somebody else has
/// changed it meanwhile.
class Lent {
 public:
  Lent() = default;
  /// `file` must stay open as long as this. Lends nothing where all of `bits` are set already.
  Lent(int file, mode_t bits);
  Lent(Lent&& other) noexcept;
  Lent& operator=(Lent&& other) noexcept;
  ~Lent() { give_back(); }
  void give_back();

 private:
  int file_ = -1;  ///< -1: nothing is lent
  mode_t before_ = 0;
  mode_t lent_ = 0;
};

/// A directory on a sandbox's private disk, readable and searchable as long as this is held, even
/// where the program's mode closes it to its owner. Then its mode is back: looking at a session
/// changes nothing in it.
class PrivateDirectory {
 public:
  PrivateDirectory() = default;
  explicit PrivateDirectory(UniqueFd fd);
  PrivateDirectory(PrivateDirectory&&) noexcept = default;
  PrivateDirectory& operator=(PrivateDirectory&& other) noexcept;
  ~PrivateDirectory() = default;
  [[nodiscard]] int get() const { return fd_.get(); }
  [[nodiscard]] bool valid() const { return fd_.valid(); }
  /// The descriptor, when the mode is back.
  [[nodiscard]] UniqueFd release() &&;

 private:
  UniqueFd fd_;
  Lent lent_;  ///< given back before fd_ is closed
};

/// The same of a private disk, where directories on the way may be closed too. A caller with no
/// rights over their owner is refused. A program that runs meanwhile may move things about: nothing
/// outside `root` is touched. Errors: host.
[[nodiscard]] Result<PrivateDirectory> open_private_directory(int root, const std::string& path);
[[nodiscard]] Result<UniqueFd> open_private_file(int root, const std::string& path);
[[nodiscard]] Result<std::string> read_private_link(int root, const std::string& path);

/// The entries of a directory, sorted by name. Errors: host.
[[nodiscard]] Result<std::vector<Entry>> read_directory(int directory);

/// The same without looking at each. Errors: host.
[[nodiscard]] Result<std::vector<std::string>> read_names(int directory);

/// The text of a symbolic link. Errors: host.
[[nodiscard]] Result<std::string> read_link(int root, const std::string& path);

[[nodiscard]] FileType type_of(mode_t mode);
/// Whether an entry of a veil hides its name: a whiteout, or the FIFO that stands for one beside a
/// copy.
[[nodiscard]] bool hides_its_name(const struct stat& facts);
/// "a/b" and "c" give "a/b/c"; "." and "c" give "c".
[[nodiscard]] std::string join(const std::string& directory, std::string_view name);
/// "." for a name without a slash.
[[nodiscard]] std::string directory_of(const std::string& path);
[[nodiscard]] std::string name_of(const std::string& path);

/// Same bytes: sizes are equal already. Holes are skipped, so the cost is what is really stored.
[[nodiscard]] bool same_content(int one, int other, off_t size);
[[nodiscard]] bool has_content(int file, std::string_view content);

}  // namespace sbx::workspace
