#include "record/event_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "protocol/entries.hpp"
#include "record/record.hpp"

namespace sbx::record {
namespace {

constexpr std::size_t kLongestName = 400;
constexpr std::size_t kMostWords = 4;

void put_short(Json& json, const char* key, const std::string& text) {
  json[key] = lossy_utf8(shortened(text, kLongestName));
}

/// O_NONBLOCK belongs to the open file description, which the caller shares; opening a pipe or
/// terminal again gives a new one. Fails if it belongs to another user; then poll(2) alone decides:
/// a pipe that is ready accepts PIPE_BUF bytes.
UniqueFd open_again(int descriptor) {
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

EventWriter::EventWriter(int descriptor, std::uint64_t began)
    : began_(began != 0 ? began : sys::now_microseconds()) {
  struct stat facts{};
  if (::fstat(descriptor, &facts) != 0) return;
  is_socket_ = S_ISSOCK(facts.st_mode);
  if (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode)) fd_ = open_again(descriptor);
  if (!fd_.valid()) fd_ = UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
}

void EventWriter::started(const Started& run) {
  Json event{{"event", "started"},
             {"schema", "sbx.events/1"},
             {"sbx", SBX_VERSION},
             {"id", run.id},
             {"pid", ::getpid()}};
  put_short(event, "policy", run.policy);
  Json words = Json::array();
  for (std::size_t i = 0; i < std::min(run.command.size(), kMostWords); ++i)
    words.push_back(lossy_utf8(shortened(run.command[i], kLongestName)));
  event["command"] = std::move(words);
  write(std::move(event));
}

void EventWriter::denied(const Denial& denial) {
  if (!is_new(std::string("denial ") + name_of(denial.kind) + " " + denial.what)) return;
  const Json whole = protocol::write_entry(denial);
  Json event{{"event", "denial"}, {"kind", whole["kind"]}};
  for (const char* key : {"what", "process", "rule", "allow_with"})
    put_short(event, key, whole[key].get<std::string>());
  write(std::move(event));
}

void EventWriter::limit_met(const LimitMet& met) {
  if (is_new("limit " + met.limit))
    write({{"event", "limit"}, {"limit", met.limit}, {"value", met.value}});
}

void EventWriter::output_cut(const std::string& stream, Bytes limit) {
  if (is_new("cut " + stream))
    write({{"event", "output-cut"}, {"stream", stream}, {"limit", limit.count}});
}

void EventWriter::ended(const run::Answer& answer, int exit_status) {
  Json outcome = outcome_json(answer);
  for (const char* key : {"detail", "rule", "hint"})
    if (outcome.contains(key) && outcome[key].is_string())
      put_short(outcome, key, outcome[key].get<std::string>());
  write({{"event", "ended"}, {"exit_status", exit_status}, {"outcome", std::move(outcome)}});
}

void EventWriter::write(Json event) {
  event["time_ms"] = (sys::now_microseconds() - began_) / 1000;
  if (dropped_ > 0) event["dropped"] = dropped_;
  if (send(dump(event)))
    dropped_ = 0;
  else
    ++dropped_;
}

bool EventWriter::is_new(std::string what) {
  return told_.insert(std::move(what)).second;
}

/// True if, as far as is known, the line will be read.
bool EventWriter::send(std::string line) {
  if (!flush()) return false;
  rest_ = std::move(line);
  const std::size_t whole = rest_.size();
  if (flush() || rest_.size() < whole) return true;
  rest_.clear();
  return false;
}

void EventWriter::note_failure(int error) {
  for (const int harmless : {EAGAIN, EINTR, EPIPE, ECONNRESET, ENOTCONN})
    if (error == harmless) return;
  failure_ = Error{.kind = ErrorKind::host,
                   .code = "cannot-write",
                   .message = "cannot write events",
                   .errno_value = error};
  fd_.reset();
}

/// True if nothing is left to write. SIGPIPE is ignored: without a reader write(2) fails with
/// EPIPE.
bool EventWriter::flush() {
  while (fd_.valid() && !rest_.empty()) {
    pollfd ready{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) <= 0) return false;
    // A pipe that is ready takes PIPE_BUF bytes; more could wait for its reader, pipe(7).
    const std::size_t part = std::min<std::size_t>(rest_.size(), PIPE_BUF);
    const ssize_t taken = is_socket_
                              ? ::send(fd_.get(), rest_.data(), part, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::write(fd_.get(), rest_.data(), part);
    if (taken < 0) note_failure(errno);
    if (taken <= 0) return false;
    rest_.erase(0, static_cast<std::size_t>(taken));
  }
  return fd_.valid();
}

}  // namespace sbx::record
