#include "cli/mcp_install/trial.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "base/json_read.hpp"
#include "base/process.hpp"
#include "base/sys.hpp"
#include "session/json.hpp"

namespace sbx::cli::mcp_install {
namespace {

using session::part;

constexpr int kPatienceMs = 120'000;  // for one answer; a call of 1+1 has 45 s at the server
constexpr std::size_t kLongestLine = std::size_t{16} << 20;
constexpr const char* kProtocol = "2025-11-25";

std::unexpected<Error> no_answer() {
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-answer",
                    .message = "the server has given no answer",
                    .hint = "what kept it from that is above"});
}

/// A server at the other end of a socket.
class Server {
 public:
  static Result<Server> start(const std::vector<std::string>& words) {
    auto [own, its] = SBX_TRY(sys::make_stream_pair());
    Server server;
    server.child_ = SBX_TRY(process::fork([&words, socket = its.get()] {
      std::vector<char*> argv;
      for (const std::string& each : words) argv.push_back(const_cast<char*>(each.c_str()));
      argv.push_back(nullptr);
      if (::dup2(socket, STDIN_FILENO) < 0 || ::dup2(socket, STDOUT_FILENO) < 0) return 1;
      ::execv("/proc/self/exe", argv.data());
      return 1;
    }));
    server.socket_ = std::move(own);
    return server;
  }

  /// Its end is the end of the server.
  void end() {
    socket_.reset();
    (void)process::reap(child_.process.get());
  }

  Status say(const Json& message) { return sys::write_all(socket_.get(), dump(message)); }

  Result<Json> ask(const char* method, Json params) {
    // A server that has ended takes no question, as it gives no answer.
    if (!say({{"jsonrpc", "2.0"},
              {"id", ++number_},
              {"method", method},
              {"params", std::move(params)}}))
      return no_answer();
    for (;;) {
      const Json message = read_json(SBX_TRY(line()));
      const Json& id = part(message, "id");
      if (id == number_ && part(message, "result").is_object()) return part(message, "result");
      if (id == number_) return no_answer();
    }
  }

 private:
  Result<std::string> line() {
    std::size_t end = 0;
    while ((end = unread_.find('\n')) == std::string::npos) {
      pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&readable, 1, kPatienceMs) <= 0 || unread_.size() > kLongestLine)
        return no_answer();
      std::array<char, 1 << 16> block{};
      const ssize_t size = ::read(socket_.get(), block.data(), block.size());
      if (size <= 0) return no_answer();
      unread_.append(block.data(), static_cast<std::size_t>(size));
    }
    std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    return line;
  }

  process::Child child_;
  UniqueFd socket_;
  std::string unread_;
  int number_ = 0;
};

/// In the first language that it offers.
const char* sum_in(const std::string& language) {
  return language == "bash" ? "echo $((1+1))" : "1+1";
}

Result<TrialAnswer> ask_all(Server& server) {
  (void)SBX_TRY(
      server.ask("initialize", {{"protocolVersion", kProtocol},
                                {"capabilities", Json::object()},
                                {"clientInfo", {{"name", "sbx"}, {"version", SBX_VERSION}}}}));
  // The next question tells whether the server has ended.
  (void)server.say({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  TrialAnswer answer;
  std::string language;
  const Json listed = SBX_TRY(server.ask("tools/list", Json::object()));
  for (const Json& tool : part(listed, "tools")) {
    answer.tools.push_back(session::member_or(tool, "name", ""));
    const Json& languages =
        part(part(part(part(tool, "inputSchema"), "properties"), "language"), "enum");
    if (languages.is_array() && !languages.empty()) language = languages.front();
  }
  const Json result = SBX_TRY(server.ask(
      "tools/call",
      {{"name", "run_code"}, {"arguments", {{"code", sum_in(language)}, {"language", language}}}}));
  const Json& content = part(result, "content");
  const std::string text = content.empty() ? "" : session::member_or(content.front(), "text", "");
  answer.first_line = text.substr(0, text.find('\n'));
  answer.is_two = text.contains(":\n2\n") || text.contains("\n[1] 2\n");
  return answer;
}

}  // namespace

Result<TrialAnswer> try_server(const std::vector<std::string>& words) {
  Server server = SBX_TRY(Server::start(words));
  auto answer = ask_all(server);
  server.end();
  return answer;
}

}  // namespace sbx::cli::mcp_install
