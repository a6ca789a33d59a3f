#include <sbx/run.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace sbx {
namespace {

/// The descriptor of sbx's record pipe, above the standard streams, which belong to the caller.
constexpr int kReportDescriptor = 3;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
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

 private:
  posix_spawn_file_actions_t actions_{};
};

std::string errno_text(int error) {
  std::array<char, 128> buffer{};
  return ::strerror_r(error, buffer.data(), buffer.size());
}

RunAnswer no_result(int error, std::string message) {
  RunAnswer answer;
  answer.error = {error, std::move(message) + ": " + errno_text(error)};
  return answer;
}

std::string program_of(const RunOptions& options) {
  return options.program.empty() ? SBX_PROGRAM_NAME : options.program;
}

std::vector<std::string> command_line(const RunOptions& options) {
  // If the caller dies, nobody reads the answer.
  std::vector<std::string> words{program_of(options), "run", "--die-with-parent", "--report-fd",
                                 std::to_string(kReportDescriptor)};
  // --json puts the output into the records; the copy on stdout is dropped.
  if (options.capture) words.emplace_back("--json");
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
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

}  // namespace

RunAnswer run_program(const RunOptions& options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return no_result(errno, "cannot make a pipe");
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);

  SpawnActions actions;
  // dup2 to the same number only clears close-on-exec (posix_spawn_file_actions_adddup2(3), glibc 2.29).
  ::posix_spawn_file_actions_adddup2(actions.get(), writer.get(), kReportDescriptor);
  if (options.capture)
    ::posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

  std::vector<std::string> words = command_line(options);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, words.front().c_str(), actions.get(), nullptr, argv.data(), environ);
  if (error != 0) return no_result(error, "cannot start '" + words.front() + "'");
  writer.close();

  RunResult result;
  result.record = read_to_end(reader.get());
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0)
    if (errno != EINTR) return no_result(errno, "cannot wait for '" + words.front() + "'");
  result.exit_status =
      WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  if (auto record = read_record(result.record)) {
    result.status = std::move(record->status);
    result.success = record->success;
    result.outcome = std::move(record->outcome);
    result.error = std::move(record->error);
  }
  RunAnswer answer;
  answer.result = std::move(result);
  return answer;
}

}  // namespace sbx
