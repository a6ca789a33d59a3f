#include "changes/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

namespace sbx::changes {
namespace {

constexpr std::string_view kSchema = "sbx.set/1";
constexpr std::array<std::string_view, 5> kChanges = {"created", "modified", "deleted", "mode",
                                                      "links"};
constexpr std::array<std::string_view, 6> kTypes = {"file", "directory", "link",
                                                    "fifo", "socket",    "device"};
constexpr std::string_view kNone = "-";
constexpr std::string_view kNoPath = ".";
constexpr std::string_view kDisturbed = "disturbed";

std::string escaped(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(bytes.size());
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte > 0x20 && byte < 0x7f && byte != '%') {
      text += each;
      continue;
    }
    text += '%';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    std::size_t used = 1;
    if (text.front() == '%') {
      unsigned byte = 0;
      if (text.size() < 3) return std::nullopt;
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + 3, byte, 16);
      if (error != std::errc{} || end != text.data() + 3 || byte == 0) return std::nullopt;
      bytes += static_cast<char>(byte);
      used = 3;
    } else {
      bytes += text.front();
    }
    text.remove_prefix(used);
  }
  return bytes;
}

std::string time_text(const timespec& time) {
  return fmt::format("{}.{:09}", time.tv_sec, time.tv_nsec);
}

std::string before_text(const std::optional<Noted>& before) {
  if (!before) return std::string(kNone);
  return fmt::format("{}:{}:{}:{}{}{}", before->inode, before->bytes, time_text(before->modified),
                     time_text(before->changed),
                     before->links > 1 ? fmt::format(":{}", before->links) : "",
                     before->disturbed ? ":disturbed" : "");
}

template <class Number>
bool number(std::string_view text, Number& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

/// What stands before the next `divider`; the rest stays in `text`.
std::string_view next(std::string_view& text, char divider) {
  const auto at = text.find(divider);
  const std::string_view field = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return field;
}

bool parse_time(std::string_view text, timespec& time) {
  const std::string_view seconds = next(text, '.');
  return number(seconds, time.tv_sec) && number(text, time.tv_nsec);
}

bool parse_before(std::string_view text, std::optional<Noted>& before) {
  if (text == kNone) return true;
  before.emplace();
  const bool good =
      number(next(text, ':'), before->inode) && number(next(text, ':'), before->bytes) &&
      parse_time(next(text, ':'), before->modified) && parse_time(next(text, ':'), before->changed);
  if (!text.empty() && text != kDisturbed && !number(next(text, ':'), before->links)) return false;
  before->disturbed = text == kDisturbed;
  return good && (text.empty() || before->disturbed);
}

/// True for a normal relative path without "..": joined to a directory, it stays below it.
bool is_inner(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string_view part = next(rest, '/');
    if (part.empty() || part == "." || part == ".." || part.size() > NAME_MAX) return false;
  }
  return true;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 12 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

template <class Kind, std::size_t count>
bool parse_word(const std::array<std::string_view, count>& words, std::string_view word,
                Kind& kind) {
  const auto* found = std::ranges::find(words, word);
  if (found == words.end()) return false;
  kind = static_cast<Kind>(found - words.begin());
  return true;
}

class Reader {
 public:
  Reader(const std::string& name, std::string_view text, Part part)
      : name_(name), rest_(text), part_(part) {}

  Result<Manifest> read() {
    if (take() != kSchema) return broken("it is not written in \"sbx.set/1\"");
    while (!rest_.empty()) {
      std::string_view line = take();
      const std::string_view word = next(line, ' ');
      if (word == "end") return finish(line);
      ChangeKind kind{};
      const bool is_change = parse_word(kChanges, word, kind);
      if (is_change && part_ == Part::facts) return check(std::move(manifest_));
      if (!(is_change ? change(kind, line) : fact(word, line)))
        return broken("this line is not understood");
    }
    return broken("its end is missing");
  }

 private:
  std::string_view take() {
    ++line_;
    return next(rest_, '\n');
  }

  std::unexpected<Error> broken(const std::string& why) const {
    return fail(Error{
        .kind = ErrorKind::host,
        .code = "broken-set",
        .message = fmt::format("the set \"{}\" can't be read, line {}: {}", name_, line_, why),
        .hint = fmt::format("sbx changes drop {} removes it", name_)});
  }

  Result<Manifest> finish(std::string_view count) {
    std::uint64_t lines = 0;
    if (!number(count, lines) || lines != manifest_.lines.size())
      return broken("lines are missing");
    return check(std::move(manifest_));
  }

  Result<Manifest> check(Manifest manifest) const {
    const std::string& directory = manifest.facts.directory;
    if (!directory.starts_with('/') || !is_inner(directory.substr(1)))
      return broken("it names no directory");
    if (manifest.layers.empty() || manifest.layers.front().prefix != ".")
      return broken("it names no layer");
    return manifest;
  }

  bool fact(std::string_view word, std::string_view text) {
    KeptFacts& facts = manifest_.facts;
    if (word == "made") return number(text, facts.made);
    if (word == "success") return parse_flag(text, facts.success);
    if (word == "count") return number(text, facts.count);
    if (word == "bytes") return number(text, facts.bytes);
    if (word == "layer") return layer(text);
    if (word == "seen") return seen(text);
    if (word == "held") return held(text);
    if (word == "linked") return linked(text);
    if (word == "lost") return lost(text);
    auto value = unescaped(text);
    if (!value) return false;
    if (word == "directory") return assign(facts.directory, std::move(*value));
    if (word == "run") return assign(facts.run, std::move(*value));
    if (word == "outcome") return assign(facts.outcome, std::move(*value));
    if (word == "argument") return append(facts.command, std::move(*value));
    if (word == "policy") return append(facts.policy_files, std::move(*value));
    return false;
  }

  static bool assign(std::string& to, std::string value) {
    to = std::move(value);
    return true;
  }
  static bool append(std::vector<std::string>& to, std::string value) {
    to.push_back(std::move(value));
    return true;
  }
  static bool parse_flag(std::string_view text, bool& flag) {
    flag = text == "yes";
    return flag || text == "no";
  }

  bool layer(std::string_view text) {
    LayerLine& layer = manifest_.layers.emplace_back();
    if (!number(next(text, ' '), layer.inode)) return false;
    auto prefix = unescaped(text);
    if (!prefix || (*prefix != "." && !is_inner(*prefix))) return false;
    return assign(layer.prefix, std::move(*prefix));
  }

  bool seen(std::string_view text) {
    DirectoryLine& line = manifest_.directories.emplace_back();
    if (!number(next(text, ' '), line.inode) || !number(next(text, ' '), line.mode, 8) ||
        line.mode > 07777)
      return false;
    auto path = unescaped(text);
    return path && is_inner(*path) && assign(line.path, std::move(*path));
  }

  bool held(std::string_view text) {
    auto path = unescaped(next(text, ' '));
    auto holder = unescaped(text);
    if (!path || !is_inner(*path) || !holder) return false;
    manifest_.held.push_back({.path = std::move(*path), .why = std::move(*holder)});
    return true;
  }

  bool lost(std::string_view text) {
    auto path = unescaped(next(text, ' '));
    auto why = unescaped(text);
    if (!path || !is_inner(*path) || !why) return false;
    manifest_.facts.lost.push_back({.path = std::move(*path), .why = std::move(*why)});
    return true;
  }

  bool linked(std::string_view text) {
    workspace::Linked linked;
    if (!number(next(text, ' '), linked.file) || !number(next(text, ' '), linked.names) ||
        !parse_flag(next(text, ' '), linked.is_split))
      return false;
    auto path = unescaped(next(text, ' '));
    auto to = unescaped(text);
    if (!path || !is_inner(*path) || !to || !(*to == kNoPath || is_inner(*to))) return false;
    if (*to != kNoPath) linked.to = std::move(*to);
    manifest_.links.insert_or_assign(std::move(*path), std::move(linked));
    return true;
  }

  bool change(ChangeKind kind, std::string_view text) {
    Line& line = manifest_.lines.emplace_back();
    line.change.change = kind;
    if (!parse_word(kTypes, next(text, ' '), line.change.type) ||
        !number(next(text, ' '), line.change.mode, 8) || line.change.mode > 07777 ||
        !number(next(text, ' '), line.change.bytes))
      return false;
    const std::string_view content = next(text, ' ');
    if (content != kNone) {
      if (!is_number(content)) return false;
      line.content = content;
    }
    if (!parse_before(next(text, ' '), line.before)) return false;
    auto path = unescaped(text);
    if (!path || !(is_inner(*path) || (*path == "." && kind == ChangeKind::mode))) return false;
    return assign(line.change.path, std::move(*path));
  }

  const std::string& name_;
  std::string_view rest_;
  Part part_;
  std::size_t line_ = 0;
  Manifest manifest_;
};

}  // namespace

std::string write_manifest(const Manifest& manifest) {
  const KeptFacts& facts = manifest.facts;
  std::string text =
      fmt::format("{}\nmade {}\ndirectory {}\nrun {}\noutcome {}\nsuccess {}\ncount {}\nbytes {}\n",
                  kSchema, facts.made, escaped(facts.directory), escaped(facts.run),
                  escaped(facts.outcome), facts.success ? "yes" : "no", facts.count, facts.bytes);
  for (const std::string& word : facts.command) text += fmt::format("argument {}\n", escaped(word));
  for (const std::string& file : facts.policy_files)
    text += fmt::format("policy {}\n", escaped(file));
  for (const LostChange& lost : facts.lost)
    text += fmt::format("lost {} {}\n", escaped(lost.path), escaped(lost.why));
  for (const LayerLine& layer : manifest.layers)
    text += fmt::format("layer {} {}\n", layer.inode, escaped(layer.prefix));
  for (const DirectoryLine& each : manifest.directories)
    text += fmt::format("seen {} {:04o} {}\n", each.inode, each.mode, escaped(each.path));
  for (const workspace::Left& each : manifest.held)
    text += fmt::format("held {} {}\n", escaped(each.path), escaped(each.why));
  for (const auto& [path, linked] : manifest.links)
    text += fmt::format("linked {} {} {} {} {}\n", linked.file, linked.names,
                        linked.is_split ? "yes" : "no", escaped(path),
                        linked.to.empty() ? std::string(kNoPath) : escaped(linked.to));
  for (const Line& line : manifest.lines) {
    const Change& change = line.change;
    text +=
        fmt::format("{} {} {:04o} {} {} {} {}\n", kChanges[static_cast<std::size_t>(change.change)],
                    kTypes[static_cast<std::size_t>(change.type)], change.mode, change.bytes,
                    line.content.empty() ? kNone : std::string_view(line.content),
                    before_text(line.before), escaped(change.path));
  }
  return text + fmt::format("end {}\n", manifest.lines.size());
}

Result<Manifest> parse_manifest(const std::string& name, std::string_view text, Part part) {
  return Reader(name, text, part).read();
}

}  // namespace sbx::changes
