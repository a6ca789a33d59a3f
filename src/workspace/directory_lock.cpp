#include "workspace/directory_lock.hpp"

#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "host/parse.hpp"

namespace sbx::workspace {
namespace {

constexpr int kStep = 10;  // milliseconds
constexpr std::size_t kLocksLimit = std::size_t{4} << 20;
constexpr std::size_t kSmallFile = 4096;

struct Holder {
  pid_t pid = 0;
  std::string command;
};

std::string command_of(const std::string& process) {
  auto text = sys::read_file("/proc/" + process + "/comm", kSmallFile);
  if (!text) return {};
  while (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

/// Who took the lock, by its line in proc_locks(5): "1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE
/// 0 EOF". Empty where the process is in another PID namespace, or the file system shows other
/// numbers there.
std::optional<Holder> holder_of(int directory) {
  struct stat facts{};
  const auto locks = sys::read_file("/proc/locks", kLocksLimit);
  if (!locks || ::fstat(directory, &facts) != 0) return std::nullopt;
  const std::string inode = ":" + std::to_string(facts.st_ino) + " ";
  std::string_view rest = *locks;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t at = line.find(inode);
    if (line.find(": FLOCK ") == std::string_view::npos || at == std::string_view::npos) continue;
    const std::size_t device = line.rfind(' ', at);
    const std::size_t number = line.rfind(' ', device - 1);
    pid_t pid = 0;
    std::from_chars(line.data() + number + 1, line.data() + device, pid);
    if (pid > 0) return Holder{.pid = pid, .command = command_of(std::to_string(pid))};
  }
  return std::nullopt;
}

/// Another sbx of this system, not a sandboxed program that calls itself so: that lives in a PID
/// namespace below.
bool is_sbx(const Holder& holder) {
  if (!holder.command.starts_with("sbx") && holder.command != command_of("self")) return false;
  const UniqueFd process = process::open(holder.pid);
  const auto facts =
      sys::read_file("/proc/self/fdinfo/" + std::to_string(process.get()), kSmallFile);
  return facts && host::is_of_this_pid_namespace(*facts, holder.pid);
}

std::unexpected<Error> taken(const std::optional<Holder>& holder) {
  const std::string who =
      holder ? "process " + std::to_string(holder->pid) + " (" + printable(holder->command) + ")"
             : "another process";
  return fail(Error{.kind = ErrorKind::host,
                    .code = "cannot-lock",
                    .message = who + " holds a lock on the directory that is written to",
                    .hint = holder ? "end it, or wait for its end, then try again: kill " +
                                         std::to_string(holder->pid)
                                   : "try again when it has ended"});
}

}  // namespace

Status lock_directory(int directory, const Waiting& waiting) {
  bool first = true;
  auto since = std::chrono::steady_clock::now();
  while (::flock(directory, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK)
      return fail_errno(ErrorKind::host, "cannot-lock",
                        "cannot lock the directory that is written to");
    if (std::exchange(first, false) && waiting.begins) waiting.begins();
    // Signals may be held back, and a flock(2) that waits would not see them.
    if (waiting.stop && waiting.stop())
      return fail(Error{.kind = ErrorKind::host,
                        .code = "stopped",
                        .message = "interrupted while another sbx wrote to the same directory"});
    if (std::chrono::steady_clock::now() - since > waiting.patience) {
      const auto holder = holder_of(directory);
      if (!holder || !is_sbx(*holder)) return taken(holder);
      since = std::chrono::steady_clock::now();
    }
    (void)::poll(nullptr, 0, kStep);
  }
  return {};
}

}  // namespace sbx::workspace
