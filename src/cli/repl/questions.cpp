#include "cli/repl/questions.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/json.hpp"
#include "base/sys.hpp"
#include "session/client.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

constexpr int kForever = -1;
/// More than the context's worker waits for its driver.
constexpr int kPatience = 1500;  // ms

/// Whether the descriptor has something to read in time, and the other one has not.
bool has_answer(int fd, int interrupts, int milliseconds) {
  const std::uint64_t deadline =
      sys::now_microseconds() / 1000 + static_cast<std::uint64_t>(std::max(milliseconds, 0));
  for (;;) {
    int left = milliseconds;
    if (left != kForever) {
      const std::uint64_t now = sys::now_microseconds() / 1000;
      left = now < deadline ? static_cast<int>(deadline - now) : 0;
    }
    pollfd watched[2] = {{fd, POLLIN, 0}, {interrupts, POLLIN, 0}};
    const int ready = ::poll(watched, 2, left);
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && watched[1].revents == 0;
  }
}

/// The answer; null where none came in time.
Result<Json> ask(const host::Host& host, const std::string& session, const Json& request,
                 int interrupts, int milliseconds) {
  session::Client client = SBX_TRY(session::Client::connect(host, session));
  SBX_TRY(client.send(request));
  if (!has_answer(client.fd(), interrupts, milliseconds)) return Json();
  const Json answer = SBX_TRY(client.next());
  const Json& inspected = part(answer, "inspected");
  return inspected.is_object() ? inspected : Json::object();
}

}  // namespace

bool means_end(const std::string& code) {
  return code == "session-gone" || code == "no-such-session";
}

Result<bool> Questions::begin(const std::string& language, const std::string& context) {
  const Json request{
      {"op", "eval"}, {"language", language}, {"context", context}, {"inspect", ""}, {"code", ""}};
  const Json facts = SBX_TRY(ask(host_, session_, request, interrupts_, kForever));
  if (facts.is_null()) return false;
  language_ = member_or(facts, "language", language);
  context_ = member_or(facts, "context", context);
  count_ = member_or(facts, "count", std::uint64_t{0});
  return true;
}

namespace {

Json question(const Questions& of, const char* what, const std::string& code) {
  return {{"op", "eval"},
          {"language", of.language()},
          {"context", of.context()},
          {"inspect", what},
          {"code", code}};
}

}  // namespace

Result<Questions::Completeness> Questions::completeness(const std::string& code) {
  Completeness known;
  const auto answer =
      ask(host_, session_, question(*this, "completeness", code), interrupts_, kPatience);
  if (!answer && means_end(answer.error().code)) return fail(answer.error());
  if (!answer || answer->is_null()) return known;
  count_ = member_or(*answer, "count", count_);
  known.is_complete = member_or(*answer, "status", "") != "incomplete";
  known.indent = member_or(*answer, "indent", "");
  return known;
}

Questions::Completion Questions::completion(const std::string& code) {
  Completion known;
  const auto answer =
      ask(host_, session_, question(*this, "completion", code), interrupts_, kPatience);
  if (!answer || answer->is_null()) return known;
  known.replaces = member_or(*answer, "replaces", "");
  for (const Json& each : part(*answer, "matches")) known.matches.push_back(session::text_of(each));
  return known;
}

}  // namespace sbx::cli
