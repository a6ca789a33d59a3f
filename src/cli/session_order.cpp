#include "cli/session_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "session/live_sessions.hpp"

namespace sbx::cli {

Error naming_order(Error error, const Invocation& typed, const host::Host& host) {
  if (error.code != "no-such-session" && error.code != "bad-session-name" &&
      error.code != "cannot-open")
    return error;
  std::vector<std::string> words = typed.operands;
  words.insert(words.end(), typed.request.operands.begin(), typed.request.operands.end());
  if (words.size() < 2) return error;
  const std::vector<session::LiveSession> live = session::live_sessions(host);
  const auto names_one = [&live](const std::string& word) {
    return std::ranges::find(live, word, &session::LiveSession::name) != live.end();
  };
  const auto named = std::ranges::find_if(words.begin() + 1, words.end(), names_one);
  if (named == words.end() || names_one(words.front())) return error;
  std::rotate(words.begin(), named, named + 1);
  std::string form = "sbx " + typed.command;
  // eval 1+1 work
  const bool is_code = typed.command == "session eval" && error.code == "cannot-open";
  for (std::size_t i = 0; i < words.size(); ++i)
    form += (i == 1 && is_code ? " -c " : " ") + shell_word(words[i]);
  error.hint = "the session comes first: " + form;
  return error;
}

}  // namespace sbx::cli
