#include "mcp/serve.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <utility>

#include "agent/log.hpp"
#include "base/process.hpp"
#include "base/signals.hpp"
#include "base/tell.hpp"
#include "client/place.hpp"
#include "client/starter.hpp"
#include "mcp/calls.hpp"
#include "mcp/message.hpp"
#include "mcp/tools.hpp"
#include "mcp/wire.hpp"
#include "record/words.hpp"
#include "session/json.hpp"

namespace sbx::mcp {
namespace {

/// A client that has closed standard input may read on, as a shell's pipe does: what it asked
/// before is answered where that is quick. With the end of the session it is a second.
constexpr std::chrono::milliseconds kAnswersWithin{800};

Json cacheable(bool is_modern, Json result) {
  constexpr int kForMilliseconds = 3'600'000;
  if (is_modern) result.update({{"ttlMs", kForMilliseconds}, {"cacheScope", "public"}});
  return result;
}

/// The methods of the protocol.
class Server {
 public:
  Server(EventLoop loop, Wire wire, UniqueFd signals, const agent::Options& options,
         const agent::Facts& facts, client::Starter& starter, agent::Log log)
      : loop_(std::move(loop)),
        wire_(std::move(wire)),
        signals_(std::move(signals)),
        parent_(options.parent),
        facts_(facts),
        calls_(loop_, wire_, options, facts, starter, std::move(log)) {}

  /// Gives the exit status.
  Result<int> run() {
    SBX_TRY(loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) {
      while (signals::next(signals_.get()) != 0) is_over_ = true;
    }));
    if (parent_ >= 0)
      SBX_TRY(loop_.watch(parent_, EPOLLIN, [this](std::uint32_t) {
        loop_.forget(parent_);
        is_over_ = true;
      }));
    SBX_TRY(wire_.attach(
        loop_,
        {.line = [this](const std::string& line) { take(line); },
         .too_long =
             [this] { tell({nullptr, Code::parse_error, "the line is longer than 64 MiB"}); },
         .ended = [this] { expect_no_more(); },
         .gone = [this] { is_over_ = true; }}));
    while (!is_over_ && !(expects_no_more_ && calls_.are_answered())) {
      SBX_TRY(loop_.run_once());
      calls_.clean_up();
    }
    calls_.answer_all();
    wire_.finish();
    return calls_.end() ? 0 : exit_status::kCouldNot;
  }

 private:
  void expect_no_more() {
    expects_no_more_ = true;
    loop_.after(kAnswersWithin, [this] { is_over_ = true; });
  }

  void tell(const Problem& problem) { wire_.send(problem_text(problem)); }
  void tell(const Request& request, Json result) {
    wire_.send(answer_text(request.id, request.era, std::move(result)));
  }

  void take(const std::string& line) {
    auto message = read_message(line);
    if (const auto* const problem = std::get_if<Problem>(&message)) return tell(*problem);
    if (auto* const request = std::get_if<Request>(&message)) handle(std::move(*request));
  }

  void handle(Request request) {
    const std::string& method = request.method;
    const bool is_modern = request.era == Era::modern;
    if (request.id.is_null()) {
      if (method == "notifications/cancelled")
        calls_.cancel(session::part(request.params, "requestId"));
    } else if (method == "tools/call") {
      calls_.take(std::move(request));
    } else if (method == "tools/list") {
      tell(request, cacheable(is_modern, list_of_tools(facts_)));
    } else if (is_modern && method == "server/discover") {
      tell(request, cacheable(true, {{"supportedVersions", {kModernVersion}},
                                     {"capabilities", {{"tools", Json::object()}}},
                                     {"instructions", agent::instructions_of(facts_)}}));
    } else if (!is_modern && method == "initialize") {
      tell(request, {{"protocolVersion", legacy_version(request.params)},
                     {"capabilities", {{"tools", Json::object()}}},
                     {"serverInfo", {{"name", "sbx"}, {"version", SBX_VERSION}}},
                     {"instructions", agent::instructions_of(facts_)}});
    } else if (!is_modern && method == "ping") {
      tell(request, Json::object());
    } else {
      tell(Problem{request.id, Code::no_such_method, "this server does not have that method"});
    }
  }

  EventLoop loop_;
  Wire wire_;
  UniqueFd signals_;
  int parent_;
  const agent::Facts& facts_;
  Calls calls_;
  bool expects_no_more_ = false;
  bool is_over_ = false;
};

Result<int> begin_and_serve(agent::Options& options) {
  // The starter gets nothing of the client's, and knows nothing that comes from there.
  Wire wire = SBX_TRY(Wire::take());
  const UniqueFd self = process::open_self();
  if (!self.valid())
    return fail_errno(ErrorKind::host, "cannot-clone", "cannot watch this process");
  run::Request start = options.start;
  start.program.hold = true;
  if (options.session.empty()) start.parent = self.get();
  const Person person{.hears = write_stderr, .answers = {}};
  client::Starter starter = SBX_TRY(client::Starter::fork(start, person));
  const agent::Facts facts = SBX_TRY(agent::facts_of(options));
  // A session with a name may live already, and its changes outlive this server in it.
  if (facts.is_copy && options.session.empty()) SBX_TRY(client::check_keeping(facts.host));
  // Where a policy is refused, no file is left behind.
  agent::Log log = SBX_TRY(agent::Log::open(options.log, person));
  UniqueFd signals = SBX_TRY(signals::take());
  Server server(SBX_TRY(EventLoop::make()), std::move(wire), std::move(signals), options, facts,
                starter, std::move(log));
  return server.run();
}

}  // namespace

int serve(agent::Options options) {
  const auto served = begin_and_serve(options);
  if (served) return *served;
  write_stderr(record::error_text(served.error(), {}));
  return exit_status::kCouldNot;
}

}  // namespace sbx::mcp
