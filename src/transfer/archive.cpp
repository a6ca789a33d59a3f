#include "transfer/archive.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/obstacle.hpp"
#include "base/sys.hpp"
#include "workspace/names.hpp"

namespace sbx::transfer {
namespace {

constexpr std::string_view kMagic = "sbxfile\1";  // the last byte is the version
constexpr std::size_t kGathered = 1 << 16;
constexpr std::uint64_t kWorthSplicing = 1 << 15;
constexpr std::size_t kLongestPart = 255;
constexpr std::size_t kLongestAccount = 64;
constexpr std::uint32_t kLargestErrno = 4095;
constexpr std::int64_t kNanoseconds = 1'000'000'000;

/// A frame as it travels. What its kind has no use for is 0.
struct Header {
  std::uint8_t kind = 0;
  std::uint8_t detail = 0;  ///< Reason of a fault, FileType of a listed or a written entry
  std::uint16_t mode = 0;
  std::uint32_t name = 0;  ///< bytes, after the header
  std::uint32_t text = 0;  ///< bytes, after the name
  std::uint32_t number = 0;
  std::uint64_t size = 0;
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  std::uint16_t owner = 0;  ///< bytes, after the text
  std::uint16_t group = 0;  ///< bytes, after the owner
};
static_assert(sizeof(Header) == 40);

/// Which fields a kind has.
struct Fields {
  bool name = false;
  bool mode = false;
  bool time = false;
  bool size = false;
  bool text = false;
  bool number = false;
  bool accounts = false;
  std::uint8_t last_detail = 0;  ///< 0: none
  std::uint8_t first_detail = 0;
};

Fields fields_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::file:
      return {.name = true, .mode = true, .time = true, .size = true};
    case FrameKind::directory:
      return {.name = true, .mode = true, .time = true};
    case FrameKind::link:
      return {.name = true, .time = true, .text = true};
    case FrameKind::data:
    case FrameKind::hole:
      return {.size = true};
    case FrameKind::complete:
      return {};
    case FrameKind::fault:
      return {.name = true,
              .number = true,
              .last_detail = static_cast<std::uint8_t>(Reason::itself),
              .first_detail = static_cast<std::uint8_t>(Reason::cannot_read)};
    case FrameKind::listed:
      return {.name = true,
              .mode = true,
              .time = true,
              .size = true,
              .text = true,
              .accounts = true,
              .last_detail = static_cast<std::uint8_t>(FileType::device)};
    case FrameKind::written:
      return {.name = true,
              .size = true,
              .number = true,
              .last_detail = static_cast<std::uint8_t>(FileType::device)};
    case FrameKind::end:
      return {.size = true, .number = true};
    case FrameKind::stream:
      return {.name = true, .mode = true};
  }
  return {};
}

bool is_known(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(FrameKind::file) &&
         kind <= static_cast<std::uint8_t>(FrameKind::stream);
}

bool is_right(const Header& header) {
  if (!is_known(header.kind)) return false;
  const Fields has = fields_of(static_cast<FrameKind>(header.kind));
  const bool times = header.seconds != 0 || header.nanoseconds != 0;
  return (has.name || header.name == 0) && (has.text || header.text == 0) &&
         (has.mode || header.mode == 0) && (has.size || header.size == 0) && (has.time || !times) &&
         (has.number || header.number == 0) && header.detail >= has.first_detail &&
         header.detail <= has.last_detail &&
         (has.accounts || (header.owner == 0 && header.group == 0)) &&
         header.owner <= kLongestAccount && header.group <= kLongestAccount &&
         header.name <= kLongestName && header.text <= kLongestName && header.mode <= 0777 &&
         header.nanoseconds < kNanoseconds;
}

bool has_no_zero(std::string_view text) {
  return text.find('\0') == std::string_view::npos;
}

bool is_right(const Frame& frame) {
  if (!has_no_zero(frame.name) || !has_no_zero(frame.text)) return false;
  switch (frame.kind) {
    case FrameKind::file:
    case FrameKind::directory:
    case FrameKind::stream:
      return is_sound_path(frame.name);
    case FrameKind::listed:
      return is_sound_path(frame.name) &&
             ((frame.owner.empty() && frame.group.empty()) ||
              (is_account_name(frame.owner) && is_account_name(frame.group)));
    case FrameKind::link:
      return is_sound_path(frame.name) && !frame.text.empty();
    case FrameKind::data:
      return frame.size > 0 && frame.size <= kChunk;
    case FrameKind::hole:
      return frame.size > 0;
    case FrameKind::fault:
      return frame.number <= kLargestErrno;
    case FrameKind::written:
      return frame.number <= 1;
    case FrameKind::complete:
    case FrameKind::end:
      return true;
  }
  return false;
}

/// How splice(2) answers where it can't be used: a socket, a file system without it, a filter.
bool is_no_splice(int errno_value) {
  return errno_value == EINVAL || errno_value == ENOSYS || errno_value == EPERM ||
         errno_value == EOPNOTSUPP || errno_value == EBADF;
}

}  // namespace

bool is_sound_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestName || !has_no_zero(path)) return false;
  for (;;) {
    const auto slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > kLongestPart) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_account_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestAccount &&
         std::ranges::all_of(name, [](char each) { return each > ' ' && each <= '~'; });
}

bool stays_inside(std::string_view path, std::string_view text) {
  if (text.empty() || text.starts_with('/')) return false;
  auto depth = std::ranges::count(path, '/');
  while (!text.empty()) {
    const auto slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    if (part == "..") {
      if (--depth < 0) return false;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    text = slash == std::string_view::npos ? std::string_view{} : text.substr(slash + 1);
  }
  return true;
}

std::string root_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos && path == "~") return {};
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name == "." || name == ".." ? std::string() : std::string(name);
}

std::string words_of(Reason reason, std::uint32_t number) {
  const auto with_errno = [number](const char* what) {
    const char* text = ::strerrordesc_np(static_cast<int>(number));
    return std::string(what) +
           (text != nullptr ? std::string(": ") + text : " (error " + std::to_string(number) + ")");
  };
  switch (reason) {
    case Reason::cannot_read:
      return with_errno("cannot read");
    case Reason::cannot_write:
      return with_errno("cannot write");
    case Reason::fifo:
      return workspace::describe(FileType::fifo);
    case Reason::socket:
      return workspace::describe(FileType::socket);
    case Reason::device:
      return workspace::describe(FileType::device);
    case Reason::shrank:
      return "it became shorter while it was read";
    case Reason::too_long:
      return "its path is longer than " + std::to_string(kLongestName) + " bytes";
    case Reason::too_deep:
      return "it is nested too deep";
    case Reason::too_large:
      return "it is larger than the limit";
    case Reason::leads_out:
      return "a symbolic link that leads out of what is copied";
    case Reason::cut:
      return "the transfer ended early";
    case Reason::itself:
      return "the copy goes there: it is not copied into itself";
  }
  return "it was left out";
}

Obstacle obstacle_of(Reason reason, std::uint32_t number) {
  if (reason == Reason::too_large) return Obstacle::too_large;
  const bool has_errno = reason == Reason::cannot_read || reason == Reason::cannot_write;
  return has_errno ? sbx::obstacle_of(static_cast<int>(number)) : Obstacle::none;
}

bool is_failure(Reason reason) {
  return reason == Reason::cannot_read || reason == Reason::cannot_write ||
         reason == Reason::shrank || reason == Reason::cut;
}

Reason reason_for(FileType special) {
  switch (special) {
    case FileType::fifo:
      return Reason::fifo;
    case FileType::socket:
      return Reason::socket;
    default:
      return Reason::device;
  }
}

std::unexpected<Error> broken(std::string why, int errno_value) {
  return fail(Error{.kind = ErrorKind::host,
                    .code = "broken-transfer",
                    .message = std::move(why),
                    .errno_value = errno_value});
}

Writer::Writer(int fd, Passed passed) : fd_(fd), passed_(std::move(passed)), pending_(kMagic) {
  (void)::fcntl(fd, F_SETPIPE_SZ,
                static_cast<int>(kChunk));  // smaller or no pipe: slower, that's all
}

Status Writer::put(const Frame& frame) {
  const bool has_type = frame.kind == FrameKind::listed || frame.kind == FrameKind::written;
  const bool fault = frame.kind == FrameKind::fault;
  const Header header{.kind = static_cast<std::uint8_t>(frame.kind),
                      .detail = fault      ? static_cast<std::uint8_t>(frame.reason)
                                : has_type ? static_cast<std::uint8_t>(frame.type)
                                           : std::uint8_t{0},
                      .mode = static_cast<std::uint16_t>(frame.mode & 0777),
                      .name = static_cast<std::uint32_t>(frame.name.size()),
                      .text = static_cast<std::uint32_t>(frame.text.size()),
                      .number = frame.number,
                      .size = frame.size,
                      .seconds = frame.modified.tv_sec,
                      .nanoseconds = static_cast<std::uint32_t>(frame.modified.tv_nsec),
                      .owner = static_cast<std::uint16_t>(frame.owner.size()),
                      .group = static_cast<std::uint16_t>(frame.group.size())};
  pending_.append(reinterpret_cast<const char*>(&header), sizeof header);
  pending_ += frame.name;
  pending_ += frame.text;
  pending_ += frame.owner;
  pending_ += frame.group;
  return pending_.size() >= kGathered ? flush() : Status();
}

Status Writer::bytes(std::string_view bytes) {
  pending_ += bytes;
  return pending_.size() >= kGathered ? flush() : Status();
}

Result<Writer::Read> Writer::bytes_of(int file, off_t at, std::uint64_t size) {
  Read read;
  SBX_TRY(flush());
  while (read.bytes < size) {
    const std::size_t want = size - read.bytes;
    ssize_t got = -1;
    if (may_splice_) {
      got = ::splice(file, &at, fd_, nullptr, want, SPLICE_F_MORE);
      if (got < 0 && is_no_splice(errno)) {
        may_splice_ = false;
        continue;
      }
      if (got < 0 && errno == EPIPE) return broken("the other end of the transfer is gone", EPIPE);
      if (got < 0 && errno == EAGAIN) {  // a non-blocking pipe: write_all() waits
        may_splice_ = false;
        continue;
      }
    } else {
      block_.resize(kChunk);
      got = ::pread(file, block_.data(), std::min(want, block_.size()), at);
      if (got > 0) {
        SBX_TRY(bytes({block_.data(), static_cast<std::size_t>(got)}));
        at += got;
      }
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) read.errno_value = errno;
    if (got <= 0) break;
    read.bytes += static_cast<std::uint64_t>(got);
    if (passed_) passed_(sent_ += static_cast<std::uint64_t>(got));
  }
  const std::string zeros(std::min<std::uint64_t>(size - read.bytes, kGathered), '\0');
  for (std::uint64_t left = size - read.bytes; left > 0;) {
    const auto count = std::min<std::uint64_t>(left, zeros.size());
    SBX_TRY(bytes(std::string_view(zeros).substr(0, count)));
    left -= count;
  }
  return read;
}

Status Writer::flush() {
  const Status done = sys::write_all(fd_, pending_);
  pending_.clear();
  if (!done) return broken("the other end of the transfer is gone", done.error().errno_value);
  return {};
}

Reader::Reader(int fd, Passed passed) : fd_(fd), passed_(std::move(passed)), buffer_(kBuffer) {
  (void)::fcntl(fd, F_SETPIPE_SZ,
                static_cast<int>(kChunk));  // smaller or no pipe: slower, that's all
}

Status Reader::fill(std::size_t at_most) {
  begin_ = end_ = 0;
  for (;;) {
    const ssize_t got = ::read(fd_, buffer_.data(), std::min(at_most, buffer_.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
      (void)::poll(&wait, 1, -1);  // an error shows in the next read
      continue;
    }
    if (got < 0) return broken("cannot read from the other end of the transfer", errno);
    if (got == 0) return broken("the transfer ended early");
    end_ = static_cast<std::size_t>(got);
    return {};
  }
}

/// Bytes beyond `at_most` stay in the pipe: they are spliced from there.
Status Reader::read_exactly(char* to, std::size_t size, std::size_t at_most) {
  while (size > 0) {
    if (begin_ == end_) SBX_TRY(fill(std::max(at_most, std::size_t{1})));
    const std::size_t count = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, count);
    begin_ += count;
    to += count;
    size -= count;
    at_most -= std::min(at_most, count);
  }
  return {};
}

Status Reader::check_order(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::data:
    case FrameKind::hole:
      if (in_stream_ ? frame.kind == FrameKind::hole : !in_file_ || frame.size > rest_of_file_)
        return broken("more of a file than was announced");
      if (!in_stream_) rest_of_file_ -= frame.size;
      if (frame.kind == FrameKind::data) rest_of_data_ = frame.size;
      return {};
    case FrameKind::complete:
      if (!(in_file_ || in_stream_) || rest_of_file_ > 0)
        return broken("less of a file than was announced");
      break;
    case FrameKind::fault:
      break;
    default:
      if (in_file_ || in_stream_) return broken("a file without its end");
  }
  in_stream_ = frame.kind == FrameKind::stream;
  in_file_ = frame.kind == FrameKind::file;
  rest_of_file_ = in_file_ ? frame.size : 0;
  ended_ = frame.kind == FrameKind::end;
  return {};
}

Result<Frame> Reader::next() {
  if (ended_) return broken("a frame after the end");
  if (rest_of_data_ > 0) (void)SBX_TRY(take(-1));
  if (!begun_) {
    std::array<char, kMagic.size()> magic{};
    SBX_TRY(read_exactly(magic.data(), magic.size(), kBuffer));
    if (std::string_view(magic.data(), magic.size()) != kMagic)
      return broken("the other end does not speak the language of this sbx");
    begun_ = true;
  }
  Header header;
  SBX_TRY(read_exactly(reinterpret_cast<char*>(&header), sizeof header,
                       rest_of_file_ > kBuffer ? sizeof header : kBuffer));
  if (!is_right(header)) return broken("a frame that makes no sense");
  Frame frame{.kind = static_cast<FrameKind>(header.kind),
              .mode = header.mode,
              .number = header.number,
              .size = header.size,
              .modified = {.tv_sec = header.seconds, .tv_nsec = header.nanoseconds}};
  if (frame.kind == FrameKind::fault) frame.reason = static_cast<Reason>(header.detail);
  if (frame.kind == FrameKind::listed || frame.kind == FrameKind::written)
    frame.type = static_cast<FileType>(header.detail);
  frame.name.resize(header.name);
  frame.text.resize(header.text);
  frame.owner.resize(header.owner);
  frame.group.resize(header.group);
  for (std::string* const each : {&frame.name, &frame.text, &frame.owner, &frame.group})
    SBX_TRY(read_exactly(each->data(), each->size(), kBuffer));
  if (!is_right(frame)) return broken("a name or a size that can't be");
  SBX_TRY(check_order(frame));
  return frame;
}

Result<Reader::Written> Reader::take(int file) {
  Written written;
  while (rest_of_data_ > 0) {
    if (begin_ == end_) {
      if (file >= 0 && may_splice_ && written.errno_value == 0 && rest_of_data_ >= kWorthSplicing) {
        const ssize_t got = ::splice(fd_, nullptr, file, nullptr, rest_of_data_, SPLICE_F_MORE);
        if (got > 0) {
          rest_of_data_ -= static_cast<std::uint64_t>(got);
          received_ += static_cast<std::uint64_t>(got);
          if (passed_) passed_(received_);
          continue;
        }
        if (got == 0) return broken("the transfer ended early");
        if (errno == EINTR) continue;
        if (is_no_splice(errno) || errno == EAGAIN)
          may_splice_ = false;
        else
          written.errno_value = errno;
        continue;
      }
      SBX_TRY(fill(std::min<std::uint64_t>(rest_of_data_, kBuffer)));
    }
    const auto count = std::min<std::uint64_t>(rest_of_data_, end_ - begin_);
    if (file >= 0 && written.errno_value == 0)
      if (const auto done = sys::write_all(file, {buffer_.data() + begin_, count}); !done)
        written.errno_value = done.error().errno_value;
    begin_ += count;
    rest_of_data_ -= count;
    received_ += count;
    if (passed_) passed_(received_);
  }
  return written;
}

}  // namespace sbx::transfer
