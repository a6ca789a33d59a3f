// A front end in sixty lines: two sandboxes at once in one process tree, each with its own budgets.
// The first is cancelled as soon as the second has ended; both are reported.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "record/words.hpp"
#include "worker/fork_server.hpp"
#include "worker/process_setup.hpp"

using namespace sbx;

namespace {

run::Request request_of(std::vector<std::string> command, const char* memory, const char* time) {
  run::Request request;
  request.policies = {{"default"}};
  request.overrides = {{.key = "limits.memory", .toml = memory, .option = "two_at_once"},
                       {.key = "limits.wall_time", .toml = time, .option = "two_at_once"}};
  request.program.operands = std::move(command);
  request.program.after_dashes = true;
  request.capture = true;
  request.id = run::make_run_id();
  return request;
}

worker::Streams no_input() {
  return {.in = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
          .out = UniqueFd(::dup(STDOUT_FILENO)),
          .err = UniqueFd(::dup(STDERR_FILENO))};
}

int report(const Error& error) {
  std::fputs(record::error_text(error, {}).c_str(), stderr);
  return exit_status_of(error);
}

int report(const char* name, const worker::Worker& run) {
  const auto finished = run.wait();
  if (!finished) return report(finished.error());
  std::printf("%s %d %s", name, finished->exit_status, finished->record.c_str());
  return 0;
}

}  // namespace

int main(int, char** argv) {
  // Before this process knows anything.
  const auto server = worker::ForkServer::start(worker::argument_area(argv));
  if (!server) return report(server.error());
  const auto sleeps = server->launch(request_of({"sleep", "60"}, "\"64M\"", "\"60s\""), no_input());
  if (!sleeps) return report(sleeps.error());
  const auto spins = server->launch(
      request_of({"sh", "-c", "echo begun; while :; do :; done"}, "\"32M\"", "\"300ms\""),
      no_input());
  if (!spins) return report(spins.error());
  const int spun = report("spins", *spins);
  sleeps->cancel();
  const int slept = report("sleeps", *sleeps);
  return spun != 0 ? spun : slept;
}
