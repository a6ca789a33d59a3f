#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <sstream>

#include "base/json.hpp"
#include "base/sys.hpp"
#include "worker/fork_server.hpp"
#include "worker/message.hpp"

namespace sbx::worker {
namespace {

run::Request request_of(std::vector<std::string> command) {
  run::Request request;
  request.policies = {{"default"}};
  request.program.operands = std::move(command);
  request.program.after_dashes = true;
  request.capture = true;
  request.id = run::make_run_id();
  return request;
}

UniqueFd null_device() {
  return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

Streams no_streams() {
  return {null_device(), null_device(), null_device()};
}

/// Of /proc/PID/stat, behind the name in parentheses, which may hold anything.
std::vector<std::uintptr_t> numbers_after_the_name(const std::string& stat) {
  std::istringstream words(stat.substr(stat.rfind(')') + 1));
  std::vector<std::uintptr_t> numbers;
  for (std::string word; words >> word;)
    numbers.push_back(std::strtoull(word.c_str(), nullptr, 10));
  return numbers;
}

Result<ForkServer> start_server() {
  // Where Linux says that the block of this process begins and ends: a test has no argv of main().
  const auto stat = sys::read_file("/proc/self/stat", 4096);
  if (!stat) return std::unexpected(stat.error());
  const std::vector<std::uintptr_t> fields = numbers_after_the_name(*stat);
  constexpr std::size_t kArgumentsBegin = 48 - 3;  // proc(5) counts from 1, and state is field 3
  constexpr std::size_t kEnvironmentEnd = 51 - 3;
  return ForkServer::start({.begin = reinterpret_cast<char*>(fields.at(kArgumentsBegin)),
                            .size = fields.at(kEnvironmentEnd) - fields.at(kArgumentsBegin)});
}

/// A run whose command has begun, and sleeps; `out` still holds what it said of "begun".
struct Sleeper {
  Worker run;
  UniqueFd out;
};

std::optional<Sleeper> sleeper(const ForkServer& server) {
  auto pipe = sys::make_pipe();
  run::Request speaks = request_of({"sh", "-c", "echo begun; exec sleep 60"});
  speaks.capture = false;
  auto run =
      server.launch(std::move(speaks), {null_device(), std::move(pipe->write), null_device()});
  char byte = 0;
  if (!run || ::read(pipe->read.get(), &byte, 1) != 1) return std::nullopt;
  return Sleeper{std::move(*run), std::move(pipe->read)};
}

Json record_of(const Worker& run) {
  const auto finished = run.wait();
  EXPECT_TRUE(finished) << (finished ? "" : finished.error().text());
  return finished ? Json::parse(finished->record) : Json();
}

TEST(Message, ComesOutAsItWentIn) {
  run::Request request = request_of({"cat", "\xff\0x"});
  request.overrides = {{"limits.memory", "\"1M\"", "--memory", true}};
  request.program.code = "print(1)\n";
  request.program.stdin_mode = plan::StdinMode::file;
  request.program.environment = {{"A", "b=c"}};
  request.program.inputs = {{"from", "/to"}};
  request.bring_out.patterns = {"*.c"};
  const auto back = unpack(pack(request));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->program.operands, request.program.operands);
  EXPECT_EQ(back->overrides.front().toml, "\"1M\"");
  EXPECT_TRUE(back->overrides.front().append);
  EXPECT_EQ(back->program.code, request.program.code);
  EXPECT_EQ(back->program.stdin_mode, plan::StdinMode::file);
  EXPECT_EQ(back->program.environment, request.program.environment);
  EXPECT_EQ(back->program.inputs.front().target, "/to");
  EXPECT_EQ(back->bring_out.patterns, request.bring_out.patterns);
  EXPECT_EQ(back->id, request.id);
  EXPECT_TRUE(back->capture);
}

TEST(Message, OtherBytesAreAnError) {
  const std::string good = pack(request_of({"true"}));
  for (const std::string& bad : {std::string(), std::string("x"), good.substr(0, good.size() / 2)})
    EXPECT_EQ(unpack(bad).error().code, "bad-request");
}

TEST(Workers, RunAtOnceEachWithItsOwnAnswer) {
  const auto server = start_server();
  ASSERT_TRUE(server);
  const auto first = server->launch(request_of({"sh", "-c", "echo one; exit 3"}), no_streams());
  run::Request limited = request_of({"sh", "-c", "echo two; while :; do :; done"});
  limited.overrides = {{"limits.wall_time", "\"300ms\"", "test", false}};
  const auto second = server->launch(std::move(limited), no_streams());
  ASSERT_TRUE(first && second);
  const Json one = record_of(*first);
  const Json two = record_of(*second);
  EXPECT_EQ(one["outcome"]["exit_code"], 3);
  EXPECT_EQ(one["stdout"]["text"], "one\n");
  EXPECT_EQ(two["outcome"]["status"], "over-budget");
  EXPECT_EQ(two["outcome"]["reason"], "wall_time");
  EXPECT_EQ(two["stdout"]["text"], "two\n");
}

TEST(Workers, ThePolicysMistakeIsInTheRecord) {
  const auto server = start_server();
  ASSERT_TRUE(server);
  run::Request wrong = request_of({"true"});
  wrong.policies = {{"no-such-policy"}};
  const auto run = server->launch(std::move(wrong), no_streams());
  ASSERT_TRUE(run);
  const Json record = record_of(*run);
  EXPECT_EQ(record["outcome"]["status"], "setup-failed");
  EXPECT_EQ(record["outcome"]["code"], "unknown-policy");
}

TEST(Workers, StreamsAreThoseThatWereHandedOver) {
  const auto server = start_server();
  auto out = sys::make_pipe();
  auto in = sys::make_pipe();
  ASSERT_TRUE(server && out && in);
  ASSERT_TRUE(sys::write_all(in->write.get(), "hello"));
  in->write.reset();
  run::Request request = request_of({"tr", "a-z", "A-Z"});
  request.capture = false;
  const auto run = server->launch(std::move(request),
                                  {std::move(in->read), std::move(out->write), null_device()});
  ASSERT_TRUE(run);
  EXPECT_EQ(record_of(*run)["outcome"]["exit_code"], 0);
  EXPECT_EQ(sys::read_all(out->read.get(), 100), "HELLO");
}

TEST(Workers, CancelEndsOneAndLeavesTheOther) {
  const auto server = start_server();
  ASSERT_TRUE(server);
  const auto sleeps = sleeper(*server);
  const auto works = server->launch(request_of({"sh", "-c", "echo done"}), no_streams());
  ASSERT_TRUE(sleeps && works);
  sleeps->run.cancel();
  EXPECT_EQ(record_of(sleeps->run)["outcome"]["status"], "cancelled");
  EXPECT_EQ(record_of(*works)["stdout"]["text"], "done\n");
}

TEST(Workers, ARunThatNobodyWaitsForIsCancelled) {
  const auto server = start_server();
  ASSERT_TRUE(server);
  auto sleeps = sleeper(*server);
  ASSERT_TRUE(sleeps);
  const UniqueFd out = std::move(sleeps->out);
  sleeps.reset();
  // End of file comes when everything that holds the pipe has ended: the sandbox and its worker.
  EXPECT_EQ(sys::read_all(out.get(), 100), "egun\n");
}

TEST(Workers, TheServerOutlivesAWorkerThatWasKilled) {
  const auto server = start_server();
  ASSERT_TRUE(server);
  const auto sleeps = sleeper(*server);
  ASSERT_TRUE(sleeps);
  ASSERT_EQ(::kill(sleeps->run.pid(), SIGKILL), 0);
  const auto finished = sleeps->run.wait();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, "worker-lost");
  EXPECT_EQ(sys::read_all(sleeps->out.get(), 100), "egun\n") << "its sandbox ended with it";
  const auto next = server->launch(request_of({"true"}), no_streams());
  ASSERT_TRUE(next);
  EXPECT_EQ(record_of(*next)["outcome"]["exit_code"], 0);
}

TEST(Workers, DoNotHoldWhatTheFrontEndHadOpen) {
  auto pipe = sys::make_pipe();
  ASSERT_TRUE(pipe);
  const auto server = start_server();
  ASSERT_TRUE(server);
  const auto sleeps = sleeper(*server);
  ASSERT_TRUE(sleeps);
  pipe->write.reset();
  EXPECT_EQ(sys::read_all(pipe->read.get(), 100), "")
      << "end of file, while server and worker live";
}

/// What `ps -E` could show of a process: nothing of it, where this caller may not look.
std::string environment_of(pid_t pid) {
  return sys::read_file("/proc/" + std::to_string(pid) + "/environ", 1 << 20).value_or("");
}

TEST(Workers, PidOneShowsNothingOfTheFrontEnd) {
  const auto server = start_server();
  ASSERT_TRUE(server);
  const auto sleeps = sleeper(*server);
  ASSERT_TRUE(sleeps);
  const std::string worker = std::to_string(sleeps->run.pid());
  const auto children = sys::read_file("/proc/" + worker + "/task/" + worker + "/children", 100);
  ASSERT_TRUE(children);
  const auto init = static_cast<pid_t>(std::strtol(children->c_str(), nullptr, 10));
  ASSERT_GT(init, 1);
  EXPECT_THAT(environment_of(::getpid()), testing::HasSubstr("PATH="));
  EXPECT_THAT(environment_of(init), testing::Not(testing::HasSubstr("PATH=")));
}

}  // namespace
}  // namespace sbx::worker
