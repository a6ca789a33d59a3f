#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

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
  const auto server = ForkServer::start();
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
  const auto server = ForkServer::start();
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
  const auto server = ForkServer::start();
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
  const auto server = ForkServer::start();
  auto pipe = sys::make_pipe();
  ASSERT_TRUE(server && pipe);
  run::Request speaks = request_of({"sh", "-c", "echo begun; exec sleep 60"});
  speaks.capture = false;
  const auto sleeps =
      server->launch(std::move(speaks), {null_device(), std::move(pipe->write), null_device()});
  const auto works = server->launch(request_of({"sh", "-c", "echo done"}), no_streams());
  ASSERT_TRUE(sleeps && works);
  char byte = 0;
  ASSERT_EQ(::read(pipe->read.get(), &byte, 1), 1);  // the command runs
  sleeps->cancel();
  EXPECT_EQ(record_of(*sleeps)["outcome"]["status"], "cancelled");
  EXPECT_EQ(record_of(*works)["stdout"]["text"], "done\n");
}

TEST(Workers, ARunThatNobodyWaitsForIsCancelled) {
  const auto server = ForkServer::start();
  auto pipe = sys::make_pipe();
  ASSERT_TRUE(server && pipe);
  run::Request speaks = request_of({"sh", "-c", "echo begun; exec sleep 60"});
  speaks.capture = false;
  {
    const auto run =
        server->launch(std::move(speaks), {null_device(), std::move(pipe->write), null_device()});
    ASSERT_TRUE(run);
    char byte = 0;
    ASSERT_EQ(::read(pipe->read.get(), &byte, 1), 1);
  }
  // End of file: everything that held the pipe has ended, the sandbox and its worker.
  EXPECT_EQ(sys::read_all(pipe->read.get(), 100), "egun\n");
}

TEST(Workers, TheServerOutlivesAWorkerThatWasKilled) {
  const auto server = ForkServer::start();
  auto pipe = sys::make_pipe();
  ASSERT_TRUE(server && pipe);
  run::Request speaks = request_of({"sh", "-c", "echo begun; exec sleep 60"});
  speaks.capture = false;
  const auto run =
      server->launch(std::move(speaks), {null_device(), std::move(pipe->write), null_device()});
  ASSERT_TRUE(run);
  char byte = 0;
  ASSERT_EQ(::read(pipe->read.get(), &byte, 1), 1);
  ASSERT_EQ(::kill(run->pid(), SIGKILL), 0);
  const auto finished = run->wait();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, "worker-lost");
  EXPECT_EQ(sys::read_all(pipe->read.get(), 100), "egun\n") << "its sandbox ended with it";
  const auto next = server->launch(request_of({"true"}), no_streams());
  ASSERT_TRUE(next);
  EXPECT_EQ(record_of(*next)["outcome"]["exit_code"], 0);
}

}  // namespace
}  // namespace sbx::worker
