#include "cli/repl/questions.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/event_loop.hpp"
#include "client/task.hpp"
#include "protocol/requests.hpp"
#include "session/client.hpp"

namespace sbx::cli {
namespace {

constexpr int kForever = -1;
/// More than the context's worker waits for its driver.
constexpr int kPatience = 1500;  // ms

/// The answer; none where none came in time.
Result<std::optional<protocol::InspectAnswer>> ask(const host::Host& host,
                                                   const std::string& session,
                                                   const protocol::InspectRequest& request,
                                                   int interrupts, int milliseconds) {
  session::Client connection = SBX_TRY(session::Client::connect(host, session));
  EventLoop loop = SBX_TRY(EventLoop::make());
  std::optional<Result<protocol::InspectAnswer>> answer;
  bool gives_up = false;
  client::Task<protocol::InspectRequest> task(std::move(connection), request);
  SBX_TRY(task.attach(loop, {.ended = [&](auto said) { answer.emplace(std::move(said)); }}));
  SBX_TRY(loop.watch(interrupts, EPOLLIN, [&](std::uint32_t) { gives_up = true; }));
  if (milliseconds != kForever)
    loop.after(std::chrono::milliseconds(milliseconds), [&] { gives_up = true; });
  while (!answer && !gives_up) SBX_TRY(loop.run_once());
  if (gives_up) return std::nullopt;
  return SBX_TRY(std::move(*answer));
}

}  // namespace

bool means_end(const std::string& code) {
  return code == "session-gone" || code == "no-such-session";
}

Result<bool> Questions::begin(const std::string& language, const std::string& context) {
  const protocol::InspectRequest request{.language = language, .context = context};
  const auto facts = SBX_TRY(ask(host_, session_, request, interrupts_, kForever));
  if (!facts) return false;
  language_ = facts->language;
  context_ = facts->context;
  count_ = facts->count;
  return true;
}

namespace {

protocol::InspectRequest about(const Questions& of, protocol::Question question,
                               const std::string& code) {
  return {.language = of.language(), .context = of.context(), .question = question, .code = code};
}

}  // namespace

Result<Questions::Completeness> Questions::completeness(const std::string& code) {
  Completeness known;
  const auto answer = ask(host_, session_, about(*this, protocol::Question::completeness, code),
                          interrupts_, kPatience);
  if (!answer && means_end(answer.error().code)) return fail(answer.error());
  if (!answer || !*answer) return known;
  count_ = (*answer)->count;
  known.is_complete = (*answer)->status.value_or(protocol::Completeness::complete) !=
                      protocol::Completeness::incomplete;
  known.indent = (*answer)->indent.value_or("");
  return known;
}

Questions::Completion Questions::completion(const std::string& code) {
  Completion known;
  auto answer = ask(host_, session_, about(*this, protocol::Question::completion, code),
                    interrupts_, kPatience);
  if (!answer || !*answer) return known;
  known.replaces = (*answer)->replaces.value_or("");
  known.matches = std::move((*answer)->matches).value_or(std::vector<std::string>{});
  return known;
}

}  // namespace sbx::cli
