#include "cli/console.hpp"

#include <poll.h>
#include <strings.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/sys.hpp"
#include "record/words.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kLongestAnswer = 100;

Console*& current() {
  static Console own;
  static Console* now = &own;
  return now;
}

bool means_yes(const std::string& line) {
  const auto begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return false;
  const std::string word = line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
  return ::strcasecmp(word.c_str(), "y") == 0 || ::strcasecmp(word.c_str(), "yes") == 0;
}

}  // namespace

bool Console::print(const std::string& text) {
  Status written = write_answer(text);
  if (written) return true;
  Error& error = written.error();
  error.message = "cannot write to stdout";
  if (error.errno_value != EPIPE) complain(error, Color::automatic);
  return false;
}

void Console::complain(const Error& error, Color color) {
  tell(record::error_text(error, paint_for(color, STDERR_FILENO)));
}

bool Console::can_ask() const {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

bool Console::ask(const std::string& question, int wake) {
  tell(question);
  std::string line;
  while (line.size() < kLongestAnswer) {
    std::array<pollfd, 2> sources{
        {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = wake, .events = POLLIN}}};
    if (::poll(sources.data(), sources.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (sources[1].revents != 0) {
      tell("\n");
      return false;
    }
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) tell("\n");  // the end of the input moved no cursor
    if (got <= 0 || byte == '\n') break;
    line += byte;
  }
  return means_yes(line);
}

Person Console::person() {
  Person person{.hears = [this](const std::string& lines) { tell(lines); }, .answers = {}};
  if (can_ask())
    person.answers = [this](const std::string& question, int wake) { return ask(question, wake); };
  return person;
}

Status Console::write_answer(const std::string& text) {
  return sys::write_all(STDOUT_FILENO, text);
}

void Console::write_error(const std::string& text) {
  (void)sys::write_all(STDERR_FILENO, text);  // its errors could be reported nowhere
}

Console& console() {
  return *current();
}

StandIn::StandIn(Console& console) : before_(std::exchange(current(), &console)) {}

StandIn::~StandIn() {
  current() = before_;
}

}  // namespace sbx::cli
