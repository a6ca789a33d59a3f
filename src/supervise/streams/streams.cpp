#include "supervise/streams/streams.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/held.hpp"
#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

constexpr uid_t kLeave = static_cast<uid_t>(-1);
constexpr timespec kLongAgo{.tv_sec = 1, .tv_nsec = 0};

std::unexpected<Error> no_stream(const char* what) {
  return fail_errno(ErrorKind::setup, "no-stream", std::string("cannot make ") + what);
}

Status give_to(int fd, uid_t uid) {
  if (uid == kLeave || held::set_owner(fd, uid, static_cast<gid_t>(-1))) return {};
  return no_stream("the command's streams its own");
}

/// A pipe whose inode belongs to the child's uid: opening /dev/stdout is checked against it,
/// pipe(7).
Result<sys::Pipe> child_pipe(uid_t uid) {
  sys::Pipe pipe = SBX_TRY(sys::make_pipe());
  SBX_TRY(give_to(pipe.read.get(), uid));
  return pipe;
}

/// An empty file that nobody can change. A kernel-internal mount has no relatime, so each read
/// updates the access time; it has no path on the host.
Result<UniqueFd> make_witness(UniqueFd& child_end, uid_t uid) {
  UniqueFd file(::memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return no_stream("an empty standard input");
  const timespec times[2] = {kLongAgo, kLongAgo};
  const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (!held::set_mode(file.get(), 0400) || !held::set_times(file.get(), times) ||
      ::fcntl(file.get(), F_ADD_SEALS, seals) != 0)
    return no_stream("an empty standard input");
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  child_end = SBX_TRY(sys::open_at(AT_FDCWD, path, O_RDONLY));
  SBX_TRY(give_to(file.get(), uid));
  return file;
}

bool readable(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY;
}

/// Input that the program leaves unread is still there for the caller: a file has an offset, and
/// pipes and stream sockets can be read without taking anything.
bool keeps_unread(int fd) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return false;
  if (!S_ISSOCK(facts.st_mode)) return S_ISREG(facts.st_mode) || S_ISFIFO(facts.st_mode);
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

bool is_directory(int fd) {
  struct stat facts{};
  return ::fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/// A directory can be opened like a file; only reading it fails.
std::unexpected<Error> directory_as_input(const std::string& what) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "not-a-file",
                    .message = what + " is a directory",
                    .hint = "name a file: a program reads one stream"});
}

/// True if stdout and stderr of the caller are the same file, pipe or terminal. /dev/null doesn't
/// count: nobody can see an order there.
bool outputs_are_one() {
  struct stat out{};
  struct stat err{};
  if (::fstat(STDOUT_FILENO, &out) != 0 || ::fstat(STDERR_FILENO, &err) != 0) return false;
  if (S_ISCHR(out.st_mode) && ::isatty(STDOUT_FILENO) != 1) return false;
  return out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

Status make_stdin(StreamPair& pair, StdinFrom from, const std::string& file, uid_t uid) {
  if (from == StdinFrom::inherit && ::isatty(STDIN_FILENO) == 1) {
    pair.supervisor.stdin_witness = SBX_TRY(make_witness(pair.child_in, uid));
    return {};
  }
  if (from == StdinFrom::file) pair.supervisor.in_source = SBX_TRY(open_source(file));
  sys::Pipe pipe = SBX_TRY(child_pipe(uid));
  pair.child_in = std::move(pipe.read);
  if (from == StdinFrom::null || (from == StdinFrom::inherit && !readable(STDIN_FILENO))) return {};
  if (from == StdinFrom::inherit && is_directory(STDIN_FILENO))
    return directory_as_input("standard input");
  pair.supervisor.in = std::move(pipe.write);
  const int source = from == StdinFrom::file ? pair.supervisor.in_source.get() : STDIN_FILENO;
  if (keeps_unread(source))
    pair.supervisor.in_gauge = UniqueFd(::fcntl(pair.child_in.get(), F_DUPFD_CLOEXEC, 3));
  return {};
}

}  // namespace

Result<UniqueFd> open_source(const std::string& file) {
  auto opened = sys::open_at(AT_FDCWD, file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!opened)
    opened.error().hint = "name a file that can be read, or say --stdin null";
  else if (is_directory(opened->get()))
    return directory_as_input("--stdin: '" + file + "'");
  return opened;
}

Status hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The wrong direction: using it fails with EBADF, as for a closed descriptor.
    const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    // The lowest free number is `fd`, because all below are open.
    if (::open("/dev/null", flags | O_CLOEXEC) != fd) return no_stream("the standard descriptors");
  }
  return {};
}

Result<StreamPair> make_streams(StdinFrom from, const std::string& stdin_file, OutputForm form,
                                uid_t child_uid) {
  SBX_TRY(hold_standard_descriptors());
  StreamPair pair;
  if (form == OutputForm::terminal) return pair;
  SBX_TRY(make_stdin(pair, from, stdin_file, child_uid));
  sys::Pipe out = SBX_TRY(child_pipe(child_uid));
  pair.supervisor.out = std::move(out.read);
  pair.supervisor.joined = form == OutputForm::passed && outputs_are_one();
  if (pair.supervisor.joined) {
    pair.child_err = UniqueFd(::fcntl(out.write.get(), F_DUPFD_CLOEXEC, 3));
    if (!pair.child_err.valid()) return no_stream("the command's output streams");
  } else {
    sys::Pipe err = SBX_TRY(child_pipe(child_uid));
    pair.child_err = std::move(err.write);
    pair.supervisor.err = std::move(err.read);
  }
  pair.child_out = std::move(out.write);
  return pair;
}

bool was_read(int witness) {
  struct stat facts{};
  return witness >= 0 && ::fstat(witness, &facts) == 0 && facts.st_atim.tv_sec != kLongAgo.tv_sec;
}

}  // namespace sbx::supervise
