// A whole front end: one event loop starts a session, runs three cells and a call at once,
// cancels one of the cells, lists a directory and ends the session. Prints a line for each.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "client/session.hpp"
#include "client/start.hpp"
#include "record/words.hpp"
#include "transfer/inside.hpp"
#include "worker/process_setup.hpp"

using namespace sbx;

namespace {

/// Prints how it ended.
auto tells(const char* what) {
  return [what](const auto& ended) {
    std::printf("%s %s\n", what,
                ended ? std::to_string(ended->status).c_str() : ended.error().code.c_str());
  };
}

Status use(client::Session session) {
  std::string printed;
  client::Cell* sleeps = nullptr;
  const auto keeps = [&](std::string_view text) { printed += text; };
  const auto cancels = [&](std::string_view /*text*/) { sleeps->cancel(); };
  const auto lists = [](const client::Listing::Ended& listed) {
    if (listed)
      for (const auto& each : listed->listing.entries) std::printf("lists %s\n", each.name.c_str());
  };
  const auto then_lists = [&](const Result<protocol::CallEnded>& ended) {
    tells("call")(ended);
    if (!session.list(".", {.ended = lists})) std::puts("lists nothing");
  };
  SBX_TRY(session.eval({.context = {"one"}, .code = "print(1 + 1)"},
                       {.out = keeps, .err = keeps, .ended = tells("adds")}));
  sleeps = SBX_TRY(session.eval(
      {.context = {"two"}, .code = "print(1, flush=True)\nimport time; time.sleep(60)"},
      {.out = cancels, .ended = tells("sleeps")}));
  SBX_TRY(session.eval({.language = {"bash"}, .code = "exit 3"}, {.ended = tells("fails")}));
  SBX_TRY(session.call(
      {.program = {.operands = {"sh", "-c", "echo made > file; exit 4"}, .after_dashes = true}},
      {.ended = then_lists}));
  SBX_TRY(session.finish());
  std::printf("prints %s", printed.c_str());
  return session.stop();
}

Status start_and_use(run::Request request) {
  const auto start = SBX_TRY(client::Start::fork("", std::move(request)));  // knows nothing yet
  const auto facts = SBX_TRY(start->run());
  EventLoop loop = SBX_TRY(EventLoop::make());
  return use({loop, SBX_TRY(host::probe_caller()), facts.name});
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  // A session executes this program in its sandbox, to list files.
  if (arguments.front() == std::string_view("sbx-inside"))
    return transfer::inside_main(arguments.subspan(1));
  const Status done =
      start_and_use({.policies = {{"default"}}, .arguments = worker::argument_area(argv)});
  if (!done) std::fputs(record::error_text(done.error(), {}).c_str(), stderr);
  return done ? 0 : exit_status_of(done.error());
}
