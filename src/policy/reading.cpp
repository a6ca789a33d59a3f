#include "policy/reading.hpp"

#include <algorithm>

namespace sbx::policy {
namespace {

constexpr std::size_t kMostFindings = 100;

std::string unquoted(std::string_view toml) {
  if (toml.size() >= 2 && toml.front() == '"' && toml.back() == '"')
    toml = toml.substr(1, toml.size() - 2);
  return std::string(toml);
}

}  // namespace

Origin Reading::origin(int line, int column) const {
  if (typed()) return {.file = place_.file, .layer = place_.layer};
  return {.file = place_.file, .line = line, .column = column, .layer = place_.layer};
}

void Reading::report(int line, int column, Problem problem) {
  if (overwhelmed()) return;
  if (++found_ == kMostFindings) {
    problem = {"too-many-findings",
               "more is wrong with this file than the " + std::to_string(kMostFindings - 1) +
                   " findings above",
               "correct these first"};
  }
  findings_.push_back(Error{.kind = ErrorKind::policy,
                            .code = std::move(problem.code),
                            .message = std::move(problem.message),
                            .origin = origin(line, column),
                            .source_line = std::string(line_of(text_, typed() ? 1 : line)),
                            .hint = std::move(problem.hint)});
}

void Reading::report(const Key& key, const Node& at, Problem problem) {
  problem.message = std::string(key.name) + ": " + problem.message;
  report(at, std::move(problem));
}

bool Reading::overwhelmed() const {
  return found_ >= kMostFindings;
}

std::string Reading::cure(std::string_view key_name, std::string_view toml) const {
  if (!typed()) {
    const auto dot = key_name.rfind('.');
    const auto last = dot == std::string_view::npos ? key_name : key_name.substr(dot + 1);
    return "write " + std::string(last) + " = " + std::string(toml);
  }
  if (place_.file == "--set")
    return "write --set '" + std::string(key_name) + "=" + std::string(toml) + "'";
  return "write " + place_.file + " " + unquoted(toml);
}

void report_unknown(const Node::Table& table, std::span<const std::string_view> known,
                    std::string_view path, Reading& reading) {
  for (const Member& member : table) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    std::string list;
    for (const std::string_view name : known) (list += list.empty() ? "" : ", ") += name;
    const std::string_view meant = nearest(member.name, known);
    reading.report(
        member.line, member.column,
        {"unknown-key",
         "unknown key " + short_text(Node{.value = std::string(path) + "." + member.name}),
         meant.empty() ? "the keys here are " + list : "did you mean " + quoted(meant) + "?"});
  }
}

}  // namespace sbx::policy
