#pragma once

#include <sys/types.h>
#include <time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"

/// The bytes between the two ends of a transfer: a preamble, then frames. Both ends are the same
/// binary, on the same machine. The host's end trusts nothing that it reads: whatever is not as
/// this page says ends the transfer.
///
/// A `file` announces a name and a size; `data` and `hole` frames follow that add up to it, and
/// `complete`; or, at any point, a `fault` that takes the file back. A file that changes while it
/// is read so never breaks the stream. A `stream` ends in the same way, which tells its end from
/// that of a sender that was killed. `end` is the last frame.
namespace sbx::transfer {

inline constexpr std::size_t kLongestName = 4096;
inline constexpr std::size_t kChunk = 1 << 20;  ///< the most bytes of one `data` frame

enum class FrameKind : std::uint8_t {
  file = 1,   ///< name, mode, time, size
  directory,  ///< name, mode, time
  link,       ///< name, time, text: where it leads
  data,       ///< size; that many bytes follow
  hole,       ///< size
  complete,   ///< the file has all of its bytes
  fault,      ///< reason, number, name: something that is not sent, or was not written
  listed,     ///< name, type, mode, time, size, text, owner, group: an entry of a listing
  written,    ///< name, type, size, number: a file or link of a report; 1: another was replaced
  end,        ///< size: the bytes of all files; number: how many there are
  stream,     ///< name, mode: a file whose size nobody knows; only `data` frames follow
};

/// Why something was left out, in words that the host chooses.
enum class Reason : std::uint8_t {
  cannot_read = 1,  ///< number: the errno
  cannot_write,     ///< number: the errno
  fifo,
  socket,
  device,
  shrank,    ///< it became shorter while it was read
  too_long,  ///< its path exceeds kLongestName
  too_deep,
  too_large,
  leads_out,  ///< a link to something outside of what is copied
  cut,        ///< the stream ended early
  itself,     ///< the directory that the copy goes to
};

struct Frame {
  FrameKind kind = FrameKind::end;
  Reason reason = Reason::cannot_read;  ///< of a fault
  FileType type = FileType::file;       ///< of a listed or a written entry
  mode_t mode = 0;                      ///< permissions only
  std::uint32_t number = 0;
  std::uint64_t size = 0;
  timespec modified{};
  std::string name{};
  std::string text{};
  std::string owner{};  ///< a name, or a number; with that of the group or not at all
  std::string group{};
};

/// Paths of entries: relative, of at most kLongestName bytes, of names with 255 bytes at most, none
/// of them empty, "." or "..". No byte is 0.
[[nodiscard]] bool is_sound_path(std::string_view path);

/// Whether it can be the name of a user or a group: visible ASCII, 64 characters at most.
[[nodiscard]] bool is_account_name(std::string_view name);

/// Whether the link at `path` with the text `text` leads to a place in the tree that `path` is
/// relative to, by its words alone. An absolute one does not.
[[nodiscard]] bool stays_inside(std::string_view path, std::string_view text);

/// The name under which what was asked for by `path` arrives: its last part. Empty for ".", "..",
/// "/" and "~": what is in them arrives without a directory around it.
[[nodiscard]] std::string root_name(std::string_view path);

/// "cannot read: Permission denied", "a FIFO". Never text from the other end.
[[nodiscard]] std::string words_of(Reason reason, std::uint32_t number);
/// What stood in the way.
[[nodiscard]] Obstacle obstacle_of(Reason reason, std::uint32_t number);
/// Whether it was meant to be copied and could not be.
[[nodiscard]] bool is_failure(Reason reason);
[[nodiscard]] Reason reason_for(FileType special);

/// The code "broken-transfer": the other end is gone, or what it sent is not an archive.
[[nodiscard]] std::unexpected<Error> broken(std::string why, int errno_value = 0);

/// Hears how many bytes of data have passed so far.
using Passed = std::function<void(std::uint64_t bytes)>;

/// Writes frames. Small ones are gathered: flush() before waiting for an answer. The descriptor
/// should be a pipe; SIGPIPE must be ignored.
class Writer {
 public:
  explicit Writer(int fd, Passed passed = {});

  [[nodiscard]] Status put(const Frame& frame);
  /// The bytes of the `data` frame before.
  [[nodiscard]] Status bytes(std::string_view bytes);
  /// The same, of an open file at an offset. What can't be read is made up for with zeros.
  struct Read {
    std::uint64_t bytes = 0;  ///< less than `size` at the end of the file, or after an error
    int errno_value = 0;
  };
  [[nodiscard]] Result<Read> bytes_of(int file, off_t at, std::uint64_t size);
  [[nodiscard]] Status flush();

 private:
  int fd_;
  Passed passed_;
  std::uint64_t sent_ = 0;
  bool may_splice_ = true;
  std::string pending_;
  std::vector<char> block_;
};

/// Reads frames.
class Reader {
 public:
  explicit Reader(int fd, Passed passed = {});

  /// Bytes of a data frame that were not taken are skipped. Errors: host "broken-transfer".
  [[nodiscard]] Result<Frame> next();
  /// Takes the bytes of the `data` frame before to an open file, or drops them (-1). What can't be
  /// written is dropped too. Errors: host "broken-transfer".
  struct Written {
    int errno_value = 0;
  };
  [[nodiscard]] Result<Written> take(int file);
  /// Bytes of data that were read so far.
  [[nodiscard]] std::uint64_t received() const { return received_; }

 private:
  static constexpr std::size_t kBuffer = 1 << 16;

  [[nodiscard]] Status read_exactly(char* to, std::size_t size, std::size_t at_most);
  [[nodiscard]] Status fill(std::size_t at_most);
  [[nodiscard]] Status check_order(const Frame& frame);

  int fd_;
  Passed passed_;
  bool may_splice_ = true;
  bool begun_ = false;
  bool ended_ = false;
  bool in_file_ = false;
  bool in_stream_ = false;
  std::uint64_t rest_of_file_ = 0;
  std::uint64_t rest_of_data_ = 0;
  std::uint64_t received_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::vector<char> buffer_;
};

}  // namespace sbx::transfer
