#include "plan/program/versions.hpp"

#include <charconv>

#include "base/letters.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

constexpr std::size_t kFileLimit = std::size_t{256} << 10;  // a package.json may be long

/// The numbers between dots, to compare "3.9.2" < "3.11.7".
std::vector<int> numbers(std::string_view version) {
  std::vector<int> parts;
  for (const std::string& word : split_words(version, ".")) {
    int number = -1;
    std::from_chars(word.data(), word.data() + word.size(), number);
    parts.push_back(number);
  }
  return parts;
}

/// The quoted strings, in order.
std::vector<std::string> quoted_texts(std::string_view text) {
  std::vector<std::string> found;
  while (true) {
    const std::size_t start = text.find_first_of("\"'");
    if (start == std::string_view::npos) return found;
    const std::size_t end = text.find(text[start], start + 1);
    if (end == std::string_view::npos) return found;
    found.emplace_back(text.substr(start + 1, end - start - 1));
    text.remove_prefix(end + 1);
  }
}

/// Position of the first '=' outside quotes.
std::size_t equals_of(std::string_view line) {
  char quote = '\0';
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (quote != '\0') {
      if (line[at] == quote) quote = '\0';
    } else if (line[at] == '"' || line[at] == '\'') {
      quote = line[at];
    } else if (line[at] == '=') {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::string> split_words(std::string_view text, std::string_view separators) {
  std::vector<std::string> found;
  while (true) {
    const std::size_t start = text.find_first_not_of(separators);
    if (start == std::string_view::npos) return found;
    text.remove_prefix(start);
    const std::size_t end = text.find_first_of(separators);
    found.emplace_back(text.substr(0, end));
    text.remove_prefix(found.back().size());
  }
}

std::vector<std::string> version_words(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    line = line.substr(0, line.find('#'));
    for (std::string& word : split_words(line, kBlanks)) found.push_back(std::move(word));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return found;
}

std::string variable(const ShimContext& context, std::string_view name) {
  const auto found = context.environment.find(std::string(name));
  return found == context.environment.end() ? std::string() : found->second;
}

std::optional<std::pair<std::string, std::string>> upward(const host::Files& files,
                                                          const std::string& start,
                                                          std::string_view name) {
  if (start.empty()) return std::nullopt;
  for (std::string directory = start;; directory = parent_of(directory)) {
    std::string path = joined(directory, name);
    if (auto text = files.read_head(path, kFileLimit))
      return std::pair(std::move(path), std::move(*text));
    if (directory == "/") return std::nullopt;
  }
}

bool is_version_name(std::string_view version) {
  return !version.empty() && !version.contains('/') && !version.starts_with('.');
}

std::string version_directory(const std::string& directory, const std::string& version,
                              const host::Files& files) {
  std::string exact = joined(directory, version);
  if (files.look(exact)) return exact;
  std::string best;
  const auto entries = files.list(directory);
  if (!entries) return exact;
  for (const host::Entry& entry : *entries)
    if (entry.name.starts_with(version + ".") &&
        (best.empty() || numbers(best) < numbers(entry.name)))
      best = entry.name;
  return best.empty() ? exact : joined(directory, best);
}

std::unexpected<Error> missing_version(std::string_view manager, std::string_view program,
                                       const Choice& choice) {
  std::string versions;
  for (const std::string& version : choice.versions)
    versions += (versions.empty() ? "" : ", ") + version;
  if (versions.empty()) versions = "(none is chosen)";
  return fail({.kind = ErrorKind::not_found,
               .code = "not-found",
               .message = std::string(manager) + " has no '" + std::string(program) +
                          "' in version " + versions + " (" + choice.where + ")",
               .hint = "install that version, or name the program by its full path"});
}

std::vector<Setting> settings_of(std::string_view text) {
  std::vector<Setting> settings;
  std::string section;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end), kBlanks);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with('[')) {
      section = trimmed(line.substr(0, line.find(']')), "[] \t");
      continue;
    }
    const std::size_t equals = equals_of(line);
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    settings.push_back({.section = section,
                        .key = std::string(trimmed(line.substr(0, equals), " \t\"'")),
                        .values = quoted_texts(line.substr(equals + 1))});
  }
  return settings;
}

}  // namespace sbx::plan
