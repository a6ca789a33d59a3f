#pragma once

#include <sys/types.h>
#include <sys/vfs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Checked system calls, one per need: EINTR retried where that is right, everything close-on-exec
/// from birth.
namespace sbx::sys {

/// Opens for reading or as O_PATH. Errors: host, "cannot open PATH".
[[nodiscard]] Result<UniqueFd> open_at(int directory, const std::string& path, int flags,
                                       mode_t mode = 0);
/// openat2(2) with resolve flags (RESOLVE_*).
[[nodiscard]] Result<UniqueFd> open_resolved(int directory, const std::string& path,
                                             std::uint64_t flags, std::uint64_t resolve);

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
[[nodiscard]] Result<Pipe> make_pipe();
/// A SOCK_SEQPACKET pair.
[[nodiscard]] Result<std::pair<UniqueFd, UniqueFd>> make_packet_pair();
/// A SOCK_STREAM pair. Unlike a pipe it can be ended while somebody else has a copy of the writing
/// end, and a write to it without a reader raises no signal.
[[nodiscard]] Result<std::pair<UniqueFd, UniqueFd>> make_stream_pair();

/// Opens what a caller has named, for reading. Never waits for the writer of a FIFO: a named one
/// that no process has open for writing is an error. Errors: host "no-writer".
[[nodiscard]] Result<UniqueFd> open_to_read(const std::string& path);
/// The whole of a (small or /proc) file, at most `limit` bytes.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t limit);
/// Everything from a descriptor until end of file, at most `limit` bytes.
[[nodiscard]] Result<std::string> read_all(int fd, std::size_t limit);
/// One write(2) of the whole text to an existing file, as /proc and cgroup files want it.
[[nodiscard]] Status write_file(const std::string& path, std::string_view text);
/// Writes all of it, waiting where the descriptor is non-blocking. Errors: host, with errno (EPIPE,
/// ENOSPC).
[[nodiscard]] Status write_all(int fd, std::string_view text);

/// The bytes in a file in memory, at its beginning: packets are limited in size. Errors: host.
[[nodiscard]] Result<UniqueFd> in_memory(std::string_view bytes);

/// The process's umask(2). Only for a process with one thread: for a moment it is another.
[[nodiscard]] mode_t file_mode_mask();
/// Another one for a while, under the same condition: what sbx makes for a program has the modes
/// that it says, whatever the caller's mask.
class FileModeMask {
 public:
  explicit FileModeMask(mode_t mask);
  FileModeMask(const FileModeMask&) = delete;
  FileModeMask& operator=(const FileModeMask&) = delete;
  ~FileModeMask();

 private:
  mode_t before_;
};

/// Or shorter, after a signal.
void sleep_1ms();
/// The bytes in use on a file system, by what statfs(2) says of it.
[[nodiscard]] std::uint64_t used_bytes(const struct statfs& facts);
/// The same for the file system of this descriptor; 0 where the kernel doesn't tell.
[[nodiscard]] std::uint64_t used_bytes(int fd);

/// The size of a page of memory in bytes.
[[nodiscard]] std::uint64_t page_size();

/// Microseconds on CLOCK_MONOTONIC.
[[nodiscard]] std::uint64_t now_microseconds();
/// Microseconds of CPU time of this thread. The time in which other threads run does not count.
[[nodiscard]] std::uint64_t spent_microseconds();

}  // namespace sbx::sys
