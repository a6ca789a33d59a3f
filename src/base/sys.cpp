#include "base/sys.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include <charconv>

#include "base/read_stream.hpp"

namespace sbx::sys {
namespace {

template <class Call>
auto retry_interrupted(Call call) {
  auto answer = call();
  while (answer < 0 && errno == EINTR) answer = call();
  return answer;
}

std::uint64_t microseconds_on(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace

Result<UniqueFd> open_at(int directory, const std::string& path, int flags, mode_t mode) {
  const int fd =
      retry_interrupted([&] { return ::openat(directory, path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return fail_errno(ErrorKind::host, "cannot-open", "cannot open '" + path + "'");
  return UniqueFd(fd);
}

Result<UniqueFd> open_resolved(int directory, const std::string& path, std::uint64_t flags,
                               std::uint64_t resolve) {
  open_how how{.flags = flags | O_CLOEXEC, .mode = 0, .resolve = resolve};
  const long fd = retry_interrupted(
      [&] { return ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how); });
  if (fd < 0) return fail_errno(ErrorKind::host, "cannot-open", "cannot open '" + path + "'");
  return UniqueFd(static_cast<int>(fd));
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail_errno(ErrorKind::setup, "no-pipe", "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

namespace {

/// A pipe without a name, as a shell makes for <(command): it has had a writer.
bool is_anonymous(int fifo) {
  struct statfs facts{};
  return ::fstatfs(fifo, &facts) == 0 && facts.f_type == PIPEFS_MAGIC;
}

/// tee(2) removes nothing from a pipe, and returns 0 if the pipe is empty and has no writer.
Result<bool> has_writer(int fifo) {
  const Pipe scratch = SBX_TRY(make_pipe());
  return ::tee(fifo, scratch.write.get(), 1, SPLICE_F_NONBLOCK) != 0;
}

Result<std::pair<UniqueFd, UniqueFd>> socket_pair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorKind::setup, "no-socket", "cannot make a socket pair");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> make_packet_pair() {
  return socket_pair(SOCK_SEQPACKET);
}

Result<std::pair<UniqueFd, UniqueFd>> make_stream_pair() {
  return socket_pair(SOCK_STREAM);
}

namespace {

/// The caller's descriptor may be non-blocking; its flags are not ours to change. An error shows in
/// the next call.
void wait_for(int fd, short events) {
  pollfd wait{.fd = fd, .events = events, .revents = 0};
  (void)retry_interrupted([&] { return ::poll(&wait, 1, -1); });
}

enum class IfEmpty : std::uint8_t { fails, waits };

Result<std::string> read_up_to(int fd, std::size_t limit, IfEmpty empty) {
  constexpr std::size_t kFirst = 4096;  // most files are smaller
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::string text;
  std::size_t want = kFirst;
  while (text.size() < limit) {
    const std::size_t before = text.size();
    want = std::min(want, limit - before);
    ssize_t got = 0;
    text.resize_and_overwrite(before + want, [&](char* bytes, std::size_t) {
      got = retry_interrupted([&] { return ::read(fd, bytes + before, want); });
      return before + static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    });
    if (got < 0 && errno == EAGAIN && empty == IfEmpty::waits) {
      wait_for(fd, POLLIN);
      continue;
    }
    if (got < 0) return fail_errno(ErrorKind::host, "cannot-read", "cannot read");
    if (got == 0) break;
    want = std::min(2 * want, kMost);
  }
  return text;
}

}  // namespace

Result<std::string> read_all(int fd, std::size_t limit) {
  return read_up_to(fd, limit, IfEmpty::fails);
}

Result<std::string> read_stream(int fd, std::size_t limit) {
  return read_up_to(fd, limit, IfEmpty::waits);
}

Result<UniqueFd> open_to_read(const std::string& path) {
  UniqueFd file = SBX_TRY(open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0 || S_ISREG(facts.st_mode)) return file;
  if (S_ISFIFO(facts.st_mode) && !is_anonymous(file.get()) && !SBX_TRY(has_writer(file.get())))
    return fail(Error{.kind = ErrorKind::host,
                      .code = "no-writer",
                      .message = "'" + path + "' is a FIFO that no process has open for writing",
                      .errno_value = 0,
                      .hint = "start its writer first"});
  // From here on reading waits: the flag is this description's own.
  ::fcntl(file.get(), F_SETFL, O_RDONLY);
  return file;
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  // A FIFO in the place of a file must not be waited for.
  const UniqueFd file = SBX_TRY(open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK));
  auto text = read_all(file.get(), limit);
  if (!text) text.error().message = "cannot read '" + path + "'";
  return text;
}

Status write_file(const std::string& path, std::string_view text) {
  const UniqueFd file = SBX_TRY(open_at(AT_FDCWD, path, O_WRONLY));
  const ssize_t written =
      retry_interrupted([&] { return ::write(file.get(), text.data(), text.size()); });
  if (written != static_cast<ssize_t>(text.size()))
    return fail_errno(ErrorKind::host, "cannot-write", "cannot write '" + path + "'");
  return {};
}

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written =
        retry_interrupted([&] { return ::write(fd, text.data(), text.size()); });
    if (written < 0 && errno == EAGAIN) {
      wait_for(fd, POLLOUT);
      continue;
    }
    if (written < 0) return fail_errno(ErrorKind::host, "cannot-write", "cannot write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<UniqueFd> in_memory(std::string_view bytes) {
  UniqueFd file(::memfd_create("sbx_message", MFD_CLOEXEC));
  if (!file.valid())
    return fail_errno(ErrorKind::host, "cannot-write", "cannot make a file in memory");
  SBX_TRY(write_all(file.get(), bytes));
  if (::lseek(file.get(), 0, SEEK_SET) < 0)
    return fail_errno(ErrorKind::host, "cannot-write", "cannot rewind a file in memory");
  return file;
}

mode_t file_mode_mask() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

FileModeMask::FileModeMask(mode_t mask) : before_(::umask(mask)) {}
FileModeMask::~FileModeMask() {
  ::umask(before_);
}

std::uint64_t used_bytes(const struct statfs& facts) {
  return (facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize);
}

std::uint64_t used_bytes(int fd) {
  struct statfs facts{};
  return fd >= 0 && ::fstatfs(fd, &facts) == 0 ? used_bytes(facts) : 0;
}

void sleep_1ms() {
  constexpr timespec kStep{.tv_sec = 0, .tv_nsec = 1'000'000};
  (void)::nanosleep(&kStep, nullptr);
}

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::uint64_t now_microseconds() {
  return microseconds_on(CLOCK_MONOTONIC);
}

std::uint64_t spent_microseconds() {
  return microseconds_on(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace sbx::sys
