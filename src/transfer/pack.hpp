#pragma once

#include <sys/stat.h>
#include <cstdint>

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "transfer/archive.hpp"

/// Sends files and trees. Nothing here waits on a FIFO or opens a device, and below what was named
/// no link is followed.
namespace sbx::transfer {

/// Which links are sent.
enum class Links : std::uint8_t {
  all,
  inside,  ///< those that stay in the tree that is sent
};

struct Packing {
  Links links = Links::all;
  std::uint64_t max_file_bytes = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_depth = std::numeric_limits<std::uint64_t>::max();
  struct stat target{};  ///< a directory that is left out below what is sent: the copy goes there
  /// Told of what is left out, by the path in the archive or, of a name that can't be opened, as it
  /// was given. Empty: the other end is told instead.
  std::function<void(const std::string& path, Reason reason, std::uint32_t number)> leave{};
};

struct Packed {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t failures = 0;  ///< what could not be read
};

class Packer {
 public:
  Packer(Writer& writer, Packing how) : writer_(writer), how_(std::move(how)) {}

  /// A file, or a directory with everything in it, as `name`; the contents of a directory if `name`
  /// is empty. A link that is named itself is followed. What can't be read is left out. Errors:
  /// host "broken-transfer".
  [[nodiscard]] Status send(const std::string& path, const std::string& name);
  [[nodiscard]] const Packed& sum() const { return sum_; }

 private:
  [[nodiscard]] Status leave(const std::string& path, Reason reason, std::uint32_t number = 0);
  [[nodiscard]] Status send_tree(const std::string& path, const std::string& name);
  [[nodiscard]] Status send_directory(int tree, const std::string& below, const std::string& name,
                                      std::vector<std::string>& waiting);
  [[nodiscard]] Status send_entry(int directory, const std::string& entry, const std::string& path,
                                  const std::string& below, std::vector<std::string>& waiting);
  [[nodiscard]] Status send_link(int directory, const std::string& entry, const std::string& path,
                                 const struct stat& facts, bool whole_root);
  [[nodiscard]] Status send_file(int file, const struct stat& facts, const std::string& path);
  [[nodiscard]] Status send_small(int file, const struct stat& facts, const std::string& path);
  [[nodiscard]] Status send_large(int file, const struct stat& facts, const std::string& path);
  [[nodiscard]] Status take_back(const std::string& path, Reason reason, std::uint32_t number);

  Writer& writer_;
  Packing how_;
  Packed sum_;
};

/// A directory beneath an open one, without following a link; by single names, as a filter may
/// refuse openat2(2). Mounts are crossed. Errors: host.
[[nodiscard]] Result<UniqueFd> open_directory(int root, const std::string& path);

/// What a file holds whose size is said to be 0, as those of /proc: it must be read to be known.
/// `most`: bytes; 0: to its end. Errors: host, with the errno of read(2), or EFBIG beyond 64 MiB.
[[nodiscard]] Result<std::string> unsized_content(int file, std::uint64_t offset,
                                                  std::uint64_t most);

/// One whole file of that content.
[[nodiscard]] Status put_content(Writer& writer, const struct stat& facts, const std::string& name,
                                 std::string_view content);

}  // namespace sbx::transfer
