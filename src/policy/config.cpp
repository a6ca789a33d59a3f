#include "policy/config.hpp"

#include <algorithm>

#include "policy/keys.hpp"
#include "policy/quoting.hpp"
#include "policy/syntax.hpp"

namespace sbx::policy {
namespace {

Origin origin_of(std::string_view file, int line, int column) {
  return {.file = std::string(file), .line = line, .column = column, .layer = Layer::file};
}

std::unexpected<Error> wrong(std::string code, std::string message, Origin origin) {
  return fail(Error{.kind = ErrorKind::policy,
                    .code = std::move(code),
                    .message = std::move(message),
                    .origin = std::move(origin),
                    .hint = "config.toml has the keys policy = \"NAME\", record = \"keep\" and "
                            "isolation = \"auto\""});
}

/// The place of the word in the list; `words` in the order of the enumeration.
Result<std::size_t> word_index(std::string_view key, std::string_view word,
                               std::span<const std::string_view> words, const Origin& origin) {
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + quoted(words[i]);
  return wrong("unknown-word", std::string(key) + " is " + list, origin);
}

Status take(const Member& member, const std::string& value, const Origin& origin, Config& config) {
  constexpr std::string_view kRecord[] = {"drop", "keep"};
  if (member.name == "policy") {
    config.policy = value;
  } else if (member.name == "record") {
    config.keep_record = SBX_TRY(word_index(member.name, value, kRecord, origin)) == 1;
  } else if (member.name == "isolation") {
    const std::size_t word =
        SBX_TRY(word_index(member.name, value, words(*find_key(member.name)), origin));
    config.isolation = {static_cast<Isolation>(word), origin};
  }
  return {};
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string_view file_name) {
  constexpr std::string_view kKnown[] = {"policy", "record", "isolation"};
  const auto root = read_toml(text);
  if (!root) {
    const SyntaxError& error = root.error();
    return wrong(error.code, error.message, origin_of(file_name, error.line, error.column));
  }
  Config config;
  for (const Member& member : *root->as<Node::Table>()) {
    if (std::ranges::find(kKnown, member.name) == std::end(kKnown))
      return wrong("unknown-key", "unknown key \"" + member.name + "\"",
                   origin_of(file_name, member.line, member.column));
    const Origin origin = origin_of(file_name, member.value.line, member.value.column);
    const auto* value = member.value.as<std::string>();
    if (value == nullptr) return wrong("wrong-type", member.name + " must be a string", origin);
    SBX_TRY(take(member, *value, origin, config));
  }
  return config;
}

}  // namespace sbx::policy
