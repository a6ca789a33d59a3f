// A whole front end: one event loop starts a session, runs three cells and a call at once,
// cancels one of the cells, lists a directory and ends the session. Prints a line for each.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/cell.hpp"
#include "client/listing.hpp"
#include "client/start.hpp"
#include "record/words.hpp"
#include "transfer/inside.hpp"
#include "worker/process_setup.hpp"

using namespace sbx;

namespace {

int report(const Error& error) {
  std::fputs(record::error_text(error, {}).c_str(), stderr);
  return exit_status_of(error);
}

/// Prints how it ended; the last one ends the loop.
template <class Ended>
auto tells(const char* what, int& open) {
  return [what, &open](Result<Ended> ended) {
    std::printf("%s %s\n", what,
                ended ? std::to_string(ended->status).c_str() : ended.error().code.c_str());
    --open;
  };
}

Result<int> use(const host::Host& host, const std::string& name) {
  const auto session = [&] { return session::Client::connect(host, name); };
  EventLoop loop = SBX_TRY(EventLoop::make());
  int open = 5;
  client::Cell adds(SBX_TRY(session()), {.id = {"a"}, .context = {"one"}, .code = "print(1 + 1)"});
  client::Cell sleeps(SBX_TRY(session()),
                      {.id = {"b"},
                       .context = {"two"},
                       .code = "print('begun', flush=True)\nimport time; time.sleep(60)"});
  client::Cell fails(SBX_TRY(session()), {.id = {"c"}, .language = {"bash"}, .code = "exit 3"});
  client::Call call(
      SBX_TRY(session()),
      {.id = {"d"},
       .program = {.operands = {"sh", "-c", "echo made > file; exit 4"}, .after_dashes = true}});
  std::optional<client::Listing> lists(std::in_place, SBX_TRY(session()), ".");
  std::string printed;
  const auto keeps = [&](std::string_view text) { printed += text; };
  const auto cancels = [&](std::string_view /*text*/) { sleeps.cancel(); };
  const auto ignores = [](std::string_view /*text*/) {};
  SBX_TRY(adds.attach(
      loop, {.out = keeps, .err = keeps, .ended = tells<protocol::CellEnded>("adds", open)}));
  SBX_TRY(sleeps.attach(
      loop, {.out = cancels, .err = ignores, .ended = tells<protocol::CellEnded>("sleeps", open)}));
  SBX_TRY(fails.attach(
      loop, {.out = ignores, .err = ignores, .ended = tells<protocol::CellEnded>("fails", open)}));
  SBX_TRY(call.attach(loop,
                      {.ended =
                           [&](Result<protocol::CallEnded> ended) {
                             tells<protocol::CallEnded>("call", open)(std::move(ended));
                             const Status begun = lists->attach(
                                 loop, {.ended = [&](const client::Listing::Ended& listed) {
                                   if (listed)
                                     for (const auto& each : listed->listing.entries)
                                       std::printf("lists %s\n", each.name.c_str());
                                   --open;
                                 }});
                             if (!begun) --open;
                           }},
                      std::array{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}));
  while (open > 0) SBX_TRY(loop.run_once());
  std::printf("prints %s", printed.c_str());
  session::Client last = SBX_TRY(session());
  SBX_TRY(last.stop_and_wait());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  // A session executes this program in its sandbox, to list files.
  if (arguments.front() == std::string_view("sbx-inside"))
    return transfer::inside_main(arguments.subspan(1));
  run::Request request;
  request.policies = {{"default"}};
  request.arguments = worker::argument_area(argv);
  const auto start = client::Start::fork("", std::move(request));  // before anything is known
  if (!start) return report(start.error());
  const auto facts = (*start)->run();
  if (!facts) return report(facts.error());
  const auto host = host::probe_caller();
  const auto done = host ? use(*host, facts->name) : Result<int>(fail(host.error()));
  return done ? *done : report(done.error());
}
