#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_read.hpp"
#include "base/unique_fd.hpp"
#include "protocol/packet.hpp"
#include "protocol/requests.hpp"

namespace sbx::protocol {
namespace {

std::vector<policy::Override> overrides() {
  return {{.key = "limits.wall_time", .toml = "\"1s\"", .option = "--timeout", .append = true}};
}

plan::RunRequest program() {
  return {.operands = {"sh", "\xFF"},
          .hold = true,
          .after_dashes = true,
          .language = "python",
          .code = "1",
          .code_from_stdin = true,
          .interactive = true,
          .stdin_mode = plan::StdinMode::file,
          .stdin_file = "in",
          .environment = {{"A", "1"}},
          .inputs = {{.source = "here", .target = "there"}},
          .require = {"all"},
          .explain = true,
          .umask = 027};
}

/// One of each operation, with no field at its default.
std::vector<Request> examples() {
  return {InfoRequest{},
          PolicyRequest{},
          StatsRequest{},
          StopRequest{},
          ExtendRequest{.milliseconds = UINT64_MAX},
          CallsRequest{},
          LogsRequest{.call = UINT64_MAX, .follow = true, .out = 1, .err = 2},
          WaitRequest{.call = 3, .record = true},
          KillRequest{.call = 4, .signal = std::uint8_t{15}},
          SendRequest{.call = 5},
          ContextsRequest{},
          InterruptRequest{.context = Name("py\xFF")},
          RestartRequest{.context = Name("r")},
          CloseContextRequest{.context = Name("r-1")},
          CallRequest{.id = Name("r_1"),
                      .program = program(),
                      .overrides = overrides(),
                      .capture = true,
                      .background = true,
                      .reads_stdin = true,
                      .open_stdin = true,
                      .silent = true,
                      .verbose = true,
                      .colors = true,
                      .record = true},
          FilesRequest{.id = Name("r_2"), .title = Name("put"), .words = {"put", "\xFF"}},
          EvalRequest{.id = Name("r_3"),
                      .language = Name("r"),
                      .context = Name("mine"),
                      .code = "1 + 1",
                      .overrides = overrides(),
                      .capture = true,
                      .follow = true},
          OpenContextRequest{.language = Name("r"), .directory = "\xFF"},
          InspectRequest{.language = Name("r"),
                         .context = Name("mine"),
                         .question = Question::completion,
                         .code = "pri"},
          ChangesRequest{.view = View::json, .colors = true, .below = "a/\xFF"},
          SnapshotRequest{},
          KeepRequest{.set = Name("mine"), .silent = true},
          BringOutRequest{.directory = Name("/\xFF"), .collect = {"*.txt"}, .silent = true}};
}

Json body(const Request& request) {
  return std::visit([](const auto& each) { return body_of(each); }, request);
}

std::pair<UniqueFd, UniqueFd> connected() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string failure(const Json& json) {
  const auto read = request_from(json);
  if (read) return "";
  EXPECT_EQ(read.error().code, "bad-message");
  EXPECT_EQ(read.error().kind, ErrorKind::usage);
  EXPECT_EQ(read.error().hint, kOtherVersion);
  return read.error().message;
}

TEST(Requests, ArriveAsTheyWereSent) {
  ASSERT_EQ(examples().size(), std::variant_size_v<Request>);
  for (std::size_t at = 0; at < examples().size(); ++at) {
    const Json sent = body(examples()[at]);
    SCOPED_TRACE(sent.at("op").get<std::string>());
    const auto [client, session] = connected();
    ASSERT_TRUE(send(client.get(), sent));
    auto packet = receive(session.get());
    ASSERT_TRUE(packet);
    const auto request = request_from(std::move(packet->body));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->index(), at);
    EXPECT_EQ(body(*request), sent);
  }
}

TEST(Requests, WithoutAMemberAreErrorsThatNameIt) {
  for (const Request& each : examples()) {
    const Json right = body(each);
    EXPECT_EQ(failure(right), "");
    for (const auto& [name, value] : right.items()) {
      // No signal cancels, and no path stands for all.
      if (name == "op" || name == "signal" || name == "below") continue;
      Json lacking = right;
      lacking.erase(name);
      EXPECT_EQ(failure(lacking), "the request to the session: \"" + name + "\" is missing");
    }
  }
}

TEST(Requests, WithAMemberOfAnotherTypeAreErrorsThatNameIt) {
  for (const Request& each : examples()) {
    const Json right = body(each);
    for (const auto& [name, value] : right.items()) {
      if (name == "op") continue;
      for (const Json& bad : {Json::array(), Json::object(), Json(-1), Json(0.5)}) {
        if (bad.type() == value.type()) continue;
        Json wrong = right;
        wrong[name] = bad;
        EXPECT_NE(failure(wrong).find("\"" + name + "\" is no"), std::string::npos);
      }
    }
  }
}

TEST(Requests, AreReadWithinTheirLimits) {
  Json kill = body_of(KillRequest{.call = 1, .signal = std::uint8_t{9}});
  kill["signal"] = 256;
  EXPECT_EQ(failure(kill),
            "the request to the session: \"signal\" is not a whole number from 0 to 255");
  Json restart = body_of(RestartRequest{});
  restart["context"] = std::string(4096, 'x');
  EXPECT_EQ(failure(restart), "");
  restart["context"] = std::string(4097, 'x');
  EXPECT_EQ(failure(restart), "the request to the session: \"context\" has more than 4096 bytes");
}

TEST(Requests, MayHaveMembersOfALaterVersion) {
  for (const Request& each : examples()) {
    Json more = body(each);
    more["later"] = Json::array({1});
    EXPECT_EQ(failure(more), "");
  }
}

TEST(Requests, OfAnotherOperationAreErrorsThatNameIt) {
  EXPECT_EQ(failure({{"op", "fly\n"}}), "the session does not know the request \"fly\\x0a\"");
  EXPECT_EQ(failure({{"op", 5}}), "the session does not know the request \"\"");
  EXPECT_EQ(failure(Json::object()), "the session does not know the request \"\"");
}

TEST(Requests, OfAnotherVersionOfPacketsAreErrors) {
  const auto [client, session] = connected();
  std::string packet;
  Json::to_cbor(body_of(InfoRequest{}), packet);
  for (const char version : {'\0', '\1', '\3', '\xFF'}) {
    const std::string foreign = version + packet;
    ASSERT_EQ(::send(client.get(), foreign.data(), foreign.size(), 0),
              static_cast<ssize_t>(foreign.size()));
    const auto read = receive(session.get());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, "bad-message");
  }
}

}  // namespace
}  // namespace sbx::protocol
