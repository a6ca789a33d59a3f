#include "cli/report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>

#include "base/held.hpp"
#include "base/planted.hpp"
#include "base/sys.hpp"
#include "base/unwritable.hpp"

namespace sbx::cli {
namespace {

/// "." for a plain name.
std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::unexpected<Error> unwritable(const std::string& shown, int errno_value) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "report-unwritable",
                    .message = fmt::format("cannot write the report to \"{}\"", shown),
                    .errno_value = errno_value,
                    .hint = errno_value == EISDIR
                                ? "name a file in it"
                                : cure_of_unwritable(directory_of(shown), errno_value)});
}

Status check_descriptor(int descriptor, std::string_view option) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  const bool writable = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0;
  if (!writable)
    return fail(Error{
        .kind = ErrorKind::usage,
        .code = "report-unwritable",
        .message = fmt::format("{}: descriptor {} is not open for writing", option, descriptor),
        .hint = fmt::format("in a shell: sbx run {} 3 ... 3>FILE", option)});
  // The child must not inherit it.
  if (descriptor > STDERR_FILENO) (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return {};
}

Status deliver(int fd, std::string_view record, const std::string& place) {
  Status written = sys::write_all(fd, record);
  if (written) return written;
  Error& error = written.error();
  error.message = "cannot write the report to " + place;
  if (error.errno_value == ENOSPC || error.errno_value == EDQUOT)
    error.hint = "that file system is full: make room, or name a file on another one";
  return written;
}

/// N of "/dev/fd/N" and its like, -1 for any other path.
int descriptor_named(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view directory : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(directory)) continue;
    const std::string_view digits = path.substr(directory.size());
    int number = -1;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
    if (error == std::errc{} && end == digits.end()) return number;
  }
  return -1;
}

/// A program of an earlier run may have created the link: the caller didn't choose its target.
std::unexpected<Error> is_a_link(const std::string& path) {
  return fail(
      Error{.kind = ErrorKind::usage,
            .code = "report-unwritable",
            .message = fmt::format("\"{}\" is a symbolic link; --report follows none", path),
            .hint = "name the file itself, /dev/stdout, /dev/stderr or /dev/fd/N"});
}

std::unexpected<Error> is_planted_there(const std::string& path) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "report-unwritable",
                    .message = fmt::format("another user owns \"{}\", in a directory that "
                                           "everybody can write to",
                                           path),
                    .hint = "name a file in a directory of your own"});
}

}  // namespace

Status ReportTargets::prepare_file(const std::string& path) {
  shown_ = path;
  // Uses the descriptor itself: opening the file again would write from its beginning.
  if (const int named = descriptor_named(path); named >= 0) {
    SBX_TRY(check_descriptor(named, path));
    device_ = UniqueFd(::fcntl(named, F_DUPFD_CLOEXEC, 3));
    return device_.valid() ? Status() : unwritable(path, errno);
  }
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0) {
    if (S_ISLNK(facts.st_mode)) return is_a_link(path);
    if (S_ISDIR(facts.st_mode)) return unwritable(path, EISDIR);
    if (!S_ISREG(facts.st_mode)) {
      if (struct stat parent{};
          ::stat(directory_of(path).c_str(), &parent) == 0 && is_planted(parent, facts))
        return is_planted_there(path);
      device_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW));
      return device_.valid() ? Status() : unwritable(path, errno);
    }
  }
  const auto slash = path.rfind('/');
  const std::string directory = directory_of(path);
  file_name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  if (file_name_.empty() || file_name_ == "." || file_name_ == "..")
    return unwritable(path, EISDIR);
  directory_ = UniqueFd(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory_.valid()) return unwritable(path, errno);
  // By the effective ids: a rename needs write and search permission on the directory, not on the
  // file.
  if (::faccessat(directory_.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return unwritable(path, errno);
  return {};
}

Result<ReportTargets> ReportTargets::prepare(const OutputOptions& options) {
  ReportTargets targets;
  targets.to_stdout_ = options.json;
  targets.descriptor_ = options.report_fd;
  if (options.report_fd >= 0) SBX_TRY(check_descriptor(options.report_fd, "--report-fd"));
  if (options.events_fd >= 0) SBX_TRY(check_descriptor(options.events_fd, "--events-fd"));
  if (!options.report_file.empty()) SBX_TRY(targets.prepare_file(options.report_file));
  return targets;
}

ReportTargets ReportTargets::stdout_only(const OutputOptions& options) {
  ReportTargets targets;
  targets.to_stdout_ = options.json;
  return targets;
}

Status ReportTargets::write_file(std::string_view record) const {
  const std::string temporary =
      fmt::format(".{}.sbx-{}", file_name_.substr(0, NAME_MAX - 32), ::getpid());
  (void)held::remove_file(directory_.get(), temporary);  // left by a killed sbx with the same pid
  UniqueFd file(
      ::openat(directory_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid()) return unwritable(shown_, errno);
  Status written = deliver(file.get(), record, fmt::format("\"{}\"", shown_));
  if (written && !held::rename({directory_.get(), temporary}, {directory_.get(), file_name_}))
    written = unwritable(shown_, errno);
  if (!written)
    (void)held::remove_file(directory_.get(), temporary);  // the first error is reported
  return written;
}

bool ReportTargets::take_at_once(std::size_t size) const {
  std::array<pollfd, 3> targets{
      {{.fd = device_.get(), .events = POLLOUT, .revents = 0},
       {.fd = descriptor_, .events = POLLOUT, .revents = 0},
       {.fd = to_stdout_ ? STDOUT_FILENO : -1, .events = POLLOUT, .revents = 0}}};
  if (size > PIPE_BUF || ::poll(targets.data(), targets.size(), 0) < 0) return false;
  return std::ranges::all_of(targets, [](const pollfd& target) {
    return target.fd < 0 || (target.revents & POLLOUT) != 0;
  });
}

std::vector<int> ReportTargets::readers() const {
  if (!file_name_.empty() || device_.valid()) return {};
  std::vector<int> list;
  for (const int target : {descriptor_, to_stdout_ ? STDOUT_FILENO : -1}) {
    if (target < 0) continue;
    struct stat facts{};
    if (::fstat(target, &facts) != 0 || !(S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode)))
      return {};
    list.push_back(target);
  }
  return list;
}

Status ReportTargets::write(std::string_view record) const {
  Status result;
  const auto note = [&result](Status status) {
    if (result && !status) result = std::move(status);
  };
  if (!file_name_.empty()) note(write_file(record));
  if (device_.valid()) note(deliver(device_.get(), record, fmt::format("\"{}\"", shown_)));
  if (descriptor_ >= 0)
    note(deliver(descriptor_, record, fmt::format("descriptor {}", descriptor_)));
  if (to_stdout_) note(deliver(STDOUT_FILENO, record, "stdout"));
  return result;
}

}  // namespace sbx::cli
