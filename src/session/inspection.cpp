#include "session/inspection.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/text.hpp"
#include "protocol/packet.hpp"
#include "session/json.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kMostMatches = 200;
constexpr std::size_t kLongestMatch = 1000;
constexpr std::size_t kMostBytes = std::size_t{100} << 10;  ///< of all matches
constexpr std::size_t kLongestIndent = 200;

}  // namespace

Result<Inspection> Inspection::receive(protocol::InspectRequest request,
                                       std::vector<UniqueFd> fds) {
  if (fds.empty())
    return fail(Error{.kind = ErrorKind::internal,
                      .code = "bad-message",
                      .message = "a question came without its connection"});
  Inspection inspection;
  inspection.request_ = std::move(request);
  inspection.client_ = std::move(fds[0]);
  return inspection;
}

std::string Inspection::begin(const Driver& driver) {
  nonce_ = random_hex();
  const std::string what = name_of(request_.question);
  if (!driver.reads_plain)
    return Json{{"op", "inspect"}, {"nonce", nonce_}, {"what", what}, {"code", request_.code}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
  std::string text = nonce_ + " " + what + "\n" + request_.code;
  std::erase(text, '\0');  // bash neither keeps nor counts them
  return text;
}

bool Inspection::take(const Json& message) {
  if (member_or(message, "event", "") != "inspected" || member_or(message, "nonce", "") != nonce_)
    return false;
  if (request_.question == protocol::Question::completion) {
    take_matches(message);
    return true;
  }
  const std::string status = member_or(message, "status", "");
  using protocol::Completeness;
  for (const auto known : {Completeness::complete, Completeness::incomplete, Completeness::invalid})
    if (status == name_of(known)) said_.status.emplace(known);
  const std::string indent = member_or(message, "indent", "");
  if (indent.size() <= kLongestIndent && indent.find_first_not_of(" \t") == std::string::npos)
    said_.indent.emplace(indent);
  return true;
}

void Inspection::take_matches(const Json& message) {
  const std::string replaces = member_or(message, "replaces", "");
  const auto matches = message.find("matches");
  if (!request_.code.ends_with(replaces) || matches == message.end() || !matches->is_array())
    return;
  std::vector<std::string> kept;
  std::size_t bytes = 0;
  for (const Json& each : *matches) {
    if (!each.is_string()) continue;
    const std::string& match = each.get_ref<const std::string&>();
    if (match.size() > kLongestMatch || !match.starts_with(replaces) || printable(match) != match)
      continue;
    bytes += match.size();
    if (kept.size() >= kMostMatches || bytes > kMostBytes) break;
    kept.push_back(match);
  }
  said_.replaces.emplace(replaces);
  said_.matches.emplace(std::move(kept));
}

void Inspection::answer(const std::string& language, const std::string& context,
                        std::uint64_t count) {
  if (!client_.valid()) return;
  said_.language = language;
  said_.context = context;
  said_.count = count;
  (void)protocol::send(client_.get(), said_);
  client_.reset();
}

void Inspection::answer(const Error& error) {
  if (client_.valid()) (void)protocol::send(client_.get(), error);
  client_.reset();
}

}  // namespace sbx::session
