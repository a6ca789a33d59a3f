#include "hints/last_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace sbx::hints {
namespace {

constexpr std::size_t kMostLines = 60;
constexpr std::size_t kMostNames = 16;
constexpr std::size_t kMostOfLine = 6;
constexpr std::size_t kLongestLine = 2048;

struct Phrase {
  std::string_view words;  ///< lower case
  Trouble trouble;
};
constexpr auto kPhrases = std::to_array<Phrase>({
    {"read-only file system", Trouble::read_only},
    {"erofs", Trouble::read_only},
    {"no such file or directory", Trouble::missing},
    {"enoent", Trouble::missing},
    {"cannot open file", Trouble::missing},
    {"cannot open input file", Trouble::missing},
    {"no such file", Trouble::missing},
    {"filenotfound", Trouble::missing},
    {"nosuchfileexception", Trouble::missing},
    {"no rule to make target", Trouble::missing},
    // rename(2) between two mounts fails so before it looks whether the file is there.
    {"cross-device link", Trouble::missing},
    {"does not exist", Trouble::missing},
    {": command not found", Trouble::missing},
    {": not found", Trouble::missing},
    {"cannot find module './", Trouble::missing},
    {"cannot find module '../", Trouble::missing},
    {"cannot find module '/", Trouble::missing},
    {"file too large", Trouble::too_large},
    {"efbig", Trouble::too_large},
    {"no space left on device", Trouble::no_room},
    {"enospc", Trouble::no_room},
    {"permission denied", Trouble::denied},
    {"eacces", Trouble::denied},
    {"connection refused", Trouble::refused},
    {"econnrefused", Trouble::refused},
    {"failed to connect", Trouble::refused},
    {"couldn't connect", Trouble::refused},
    {"cannot be opened", Trouble::refused},  // R, of a socket
    {"no module named", Trouble::module},
    {"cannot find module '", Trouble::node_module},
    {"cannot find package '", Trouble::node_module},
    {"there is no package called", Trouble::r_package},
});

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// The phrase that stands first in the line, and where.
struct Found {
  Trouble trouble{};
  std::size_t begin = 0;
  std::size_t end = 0;
};
std::optional<Found> phrase_in(std::string_view line) {
  const std::string text = lower(line);
  for (const Phrase& phrase : kPhrases)
    if (const auto at = text.find(phrase.words); at != std::string::npos)
      return Found{phrase.trouble, at, at + phrase.words.size()};
  return std::nullopt;
}

/// The kernel would look at what stands before a NUL, the deny list at the whole.
void add(std::vector<std::string>& names, std::string_view name) {
  if (name.contains('\0')) return;
  if (name.empty() || name.size() > 1024 || names.size() == kMostOfLine) return;
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

struct Quote {
  std::string_view open;
  std::string_view close;
};
constexpr auto kQuotes = std::to_array<Quote>(
    {{"'", "'"}, {"\"", "\""}, {"\xE2\x80\x98", "\xE2\x80\x99"}, {"`", "'"}, {"`", "`"}});

/// open 'a b', cannot stat ‘x’, "x": what stands in quotes.
void add_quoted(std::vector<std::string>& names, std::string_view line) {
  for (const Quote& quote : kQuotes) {
    for (std::size_t at = line.find(quote.open); at != std::string_view::npos;
         at = line.find(quote.open, at)) {
      at += quote.open.size();
      const std::size_t end = line.find(quote.close, at);
      if (end == std::string_view::npos) break;
      add(names, line.substr(at, end - at));
      at = end + quote.close.size();
    }
  }
}

std::string_view stripped(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// "cat: NAME: No such…", "cannot create NAME: Read-only…", "open NAME: no such…", "tar: NAME:
/// Cannot stat: No such…": what stands before the phrase.
void add_before(std::vector<std::string>& names, std::string_view before) {
  before = stripped(before);
  while (!before.empty() && (before.back() == ':' || before.back() == '(' || before.back() == ','))
    before = stripped(before.substr(0, before.size() - 1));
  for (const std::string_view verb : {": Cannot stat", ": Cannot open"})
    if (before.ends_with(verb)) before.remove_suffix(verb.size());
  const auto colon = before.rfind(": ");
  std::string_view part = colon == std::string_view::npos ? before : before.substr(colon + 2);
  for (const std::string_view verb : {"cannot create ", "can't create ", "cannot open "})
    if (part.starts_with(verb)) part.remove_prefix(verb.size());
  add(names, stripped(part));
  const auto blank = before.rfind(' ');
  add(names, blank == std::string_view::npos ? before : before.substr(blank + 1));
}

/// "No such file or directory: NAME", "… @ rb_sysopen - NAME (Errno…": what stands behind it.
void add_behind(std::vector<std::string>& names, std::string_view behind) {
  if (const auto ruby = behind.find(" - "); ruby != std::string_view::npos)
    behind = behind.substr(ruby + 3);
  else if (behind.starts_with(": ") || behind.starts_with(" "))
    behind = behind.substr(behind.starts_with(": ") ? 2 : 1);
  else
    return;
  behind = behind.substr(0, behind.find(" ("));
  add(names, stripped(behind));
  add(names, stripped(behind).substr(0, stripped(behind).find(' ')));
}

/// HOST:PORT, or "HOST port PORT" as curl and psql say it.
void add_addresses(std::vector<std::string>& names, std::string_view line) {
  for (const std::string_view host : {"127.0.0.1", "localhost", "::1", "0.0.0.0"}) {
    for (std::size_t at = line.find(host); at != std::string_view::npos;
         at = line.find(host, at + 1)) {
      std::string_view rest = line.substr(at + host.size());
      while (!rest.empty() && std::string_view("])\"', ").contains(rest.front()))
        rest.remove_prefix(1);
      if (rest.starts_with("port ")) rest.remove_prefix(4);
      while (!rest.empty() && std::string_view(": =").contains(rest.front())) rest.remove_prefix(1);
      std::size_t digits = 0;
      while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits])) != 0)
        ++digits;
      if (digits > 0 && digits <= 5)
        add(names, std::string(host) + ":" + std::string(rest.substr(0, digits)));
    }
  }
}

/// The first part of "No module named 'pandas.io'".
void add_module(std::vector<std::string>& names, std::string_view behind) {
  behind = stripped(behind);
  const auto is_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  while (!behind.empty() && !is_name(static_cast<unsigned char>(behind.front())))
    behind.remove_prefix(1);
  std::size_t length = 0;
  while (length < behind.size() && is_name(static_cast<unsigned char>(behind[length]))) ++length;
  add(names, behind.substr(0, length));
}

/// require("./util") looks for "./util.js" too.
void add_extensions(std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::string name = names.front();
  for (const char* const end : {".js", ".cjs", "/index.js"}) add(names, name + end);
}

/// 'lodash', "@scope/name/part", ‘ggplot2’: the package that a quoted name means.
void add_package(std::vector<std::string>& names, std::string_view behind, bool has_scopes) {
  const auto is_part = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  };
  constexpr std::string_view kQuoteMarks[] = {"'", "\"", "\xE2\x80\x98"};
  behind = stripped(behind);
  for (const std::string_view mark : kQuoteMarks)
    if (behind.starts_with(mark)) behind.remove_prefix(mark.size());
  std::size_t length = has_scopes && behind.starts_with('@') ? 1 : 0;
  const std::size_t parts = length + 1;
  for (std::size_t part = 0; part < parts; ++part) {
    if (part > 0 && length < behind.size() && behind[length] == '/') ++length;
    while (length < behind.size() && is_part(static_cast<unsigned char>(behind[length]))) ++length;
  }
  const std::string_view name = behind.substr(0, length);
  if (!name.contains("..") && !name.starts_with('.') && !name.ends_with('/')) add(names, name);
}

/// The words of what makes, renames and removes files.
bool says_write(std::string_view line) {
  constexpr auto kVerbs = std::to_array<std::string_view>(
      {"cannot create", "can't create", "cannot touch", "cannot make", "cannot remove",
       "cannot move", "cannot overwrite", "for writing", "mkdir", "unlink", "rename"});
  const std::string text = lower(line);
  return std::ranges::any_of(kVerbs, [&](std::string_view verb) { return text.contains(verb); });
}

LastWord read_line(std::string_view line, const Found& found) {
  LastWord word{.trouble = found.trouble, .names = {}};
  const std::string_view behind = line.substr(found.end);
  switch (found.trouble) {
    case Trouble::refused:
      add_addresses(word.names, line);
      break;
    case Trouble::too_large:  // whichever file it was
      break;
    case Trouble::module:
      add_module(word.names, behind);
      break;
    case Trouble::node_module:
    case Trouble::r_package:
      // The phrase ends with the quote where Node says it.
      add_package(word.names, behind, found.trouble == Trouble::node_module);
      break;
    case Trouble::read_only:
    case Trouble::no_room:
    case Trouble::denied:
    case Trouble::write_denied:
    case Trouble::missing:
      add_quoted(word.names, line);
      if (lower(line.substr(found.begin, found.end - found.begin))
              .starts_with("cannot find module"))
        add_extensions(word.names);
      add_before(word.names, line.substr(0, found.begin));
      add_behind(word.names, behind);
      if (word.trouble == Trouble::denied && says_write(line)) word.trouble = Trouble::write_denied;
      break;
  }
  return word;
}

}  // namespace

std::vector<LastWord> last_words(std::string_view text) {
  std::vector<LastWord> words;
  std::size_t names = 0;
  for (std::size_t lines = 0; !text.empty() && lines < kMostLines && names < kMostNames; ++lines) {
    if (text.back() == '\n') text.remove_suffix(1);
    const auto begin = text.rfind('\n');
    const std::string_view line =
        stripped(begin == std::string_view::npos ? text : text.substr(begin + 1));
    text = begin == std::string_view::npos ? std::string_view() : text.substr(0, begin + 1);
    const auto found = phrase_in(line.substr(0, kLongestLine));
    if (!found) continue;
    LastWord word = read_line(line.substr(0, kLongestLine), *found);
    if (word.names.size() > kMostNames - names) word.names.resize(kMostNames - names);
    names += word.names.size();
    const bool says_enough = !word.names.empty() || word.trouble == Trouble::refused ||
                             word.trouble == Trouble::too_large;
    if (says_enough && std::ranges::find(words, word) == words.end())
      words.push_back(std::move(word));
  }
  return words;
}

}  // namespace sbx::hints
