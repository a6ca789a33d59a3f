#include "lib/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sbx::lib {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  [[nodiscard]] posix_spawn_file_actions_t* get() { return &actions_; }
  /// dup2 to the same number only clears close-on-exec (posix_spawn_file_actions_adddup2(3),
  /// glibc 2.29).
  void put(const Descriptor& from, int to) {
    ::posix_spawn_file_actions_adddup2(&actions_, from.get(), to);
  }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::string errno_text(int error) {
  std::array<char, 128> buffer{};
  return ::strerror_r(error, buffer.data(), buffer.size());
}

End failed(int error, std::string message) {
  End end;
  end.errno_value = error;
  end.error = std::move(message) + ": " + errno_text(error);
  return end;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 16384> block{};
  while (true) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
}

/// The smallest number for a descriptor that takes no place of those that the process gets.
constexpr int kAbove = kReportDescriptor + 1;

/// Close-on-exec, at kAbove or higher. `fd` is closed; -1 stays -1.
int moved_up(int fd) {
  if (fd < 0 || fd >= kAbove) return fd;
  const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, kAbove);
  const int error = errno;
  ::close(fd);
  errno = error;
  return higher;
}

/// A file in memory, read from its beginning.
int file_with(const std::string& text) {
  const int fd = moved_up(::memfd_create("sbx-input", MFD_CLOEXEC));
  std::size_t done = 0;
  while (fd >= 0 && done < text.size()) {
    const ssize_t wrote =
        ::pwrite(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      ::close(fd);
      return -1;
    }
    done += static_cast<std::size_t>(wrote);
  }
  return fd;
}

/// What one process of sbx reads and writes.
struct Streams {
  Descriptor answer_from;
  Descriptor answer_to;
  Descriptor input;
  Descriptor messages;

  /// False with errno.
  bool open(const Command& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    answer_from.reset(moved_up(ends[0]));
    answer_to.reset(moved_up(ends[1]));
    if (answer_from.get() < 0 || answer_to.get() < 0) return false;
    if (command.input != nullptr) input.reset(file_with(*command.input));
    if (command.keeps_messages)
      messages.reset(moved_up(::memfd_create("sbx-messages", MFD_CLOEXEC)));
    return (command.input == nullptr || input.get() >= 0) &&
           (!command.keeps_messages || messages.get() >= 0);
  }

  void give(const Command& command, SpawnActions& actions) const {
    if (command.drops_output)
      ::posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    actions.put(answer_to, command.answers_on);
    if (input.get() >= 0) actions.put(input, STDIN_FILENO);
    if (messages.get() >= 0) actions.put(messages, STDERR_FILENO);
  }
};

}  // namespace

End run_command(const Command& command) {
  Streams streams;
  if (!streams.open(command)) return failed(errno, "cannot make a pipe");
  SpawnActions actions;
  streams.give(command, actions);

  std::vector<std::string> words = command.words;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, words.front().c_str(), actions.get(), nullptr, argv.data(), environ);
  if (error != 0) return failed(error, "cannot start '" + words.front() + "'");
  streams.answer_to.reset();

  End end;
  end.answer = read_to_end(streams.answer_from.get());
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0)
    if (errno != EINTR) return failed(errno, "cannot wait for '" + words.front() + "'");
  end.exit_status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  if (command.keeps_messages && ::lseek(streams.messages.get(), 0, SEEK_SET) == 0)
    end.messages = read_to_end(streams.messages.get());
  return end;
}

std::string program_or_installed(const std::string& typed) {
  return typed.empty() ? SBX_PROGRAM_NAME : typed;
}

}  // namespace sbx::lib
