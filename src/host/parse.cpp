#include "host/parse.hpp"

#include <charconv>

namespace sbx::host {
namespace {

/// Takes the text up to `separator` off the front; all of it when there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

std::string_view take_word(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  const std::size_t end = text.find_first_of(" \t");
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(word.size());
  return word;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

bool is_octal(char digit) {
  return digit >= '0' && digit <= '7';
}

/// The kernel writes space, tab, newline and backslash in names as \ooo (seq_path).
std::string unescaped(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size() && is_octal(text[at + 1]) &&
        is_octal(text[at + 2]) && is_octal(text[at + 3])) {
      plain.push_back(static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                                        (text[at + 3] - '0')));
      at += 3;
    } else {
      plain.push_back(text[at]);
    }
  }
  return plain;
}

}  // namespace

bool is_full_id_map(std::string_view uid_map) {
  std::string_view line = take_until(uid_map, '\n');
  return uid_map.empty() && take_word(line) == "0" && take_word(line) == "0" &&
         take_word(line) == "4294967295";
}

bool is_root_outside(std::string_view uid_map, uid_t uid) {
  while (!uid_map.empty()) {
    std::string_view line = take_until(uid_map, '\n');
    uid_t inside = 0;
    if (read_number(take_word(line), inside) && inside == uid) return take_word(line) == "0";
  }
  return false;
}

std::string home_in_passwd(std::string_view passwd, uid_t uid) {
  while (!passwd.empty()) {
    std::string_view line = take_until(passwd, '\n');
    take_until(line, ':');
    take_until(line, ':');
    uid_t number = 0;
    if (!read_number(take_until(line, ':'), number) || number != uid) continue;
    take_until(line, ':');
    take_until(line, ':');
    const std::string_view home = take_until(line, ':');
    return home.starts_with('/') ? std::string(home) : std::string();
  }
  return {};
}

std::vector<std::string> absolute_entries(std::string_view path) {
  std::vector<std::string> entries;
  while (!path.empty()) {
    std::string_view entry = take_until(path, ':');
    while (entry.size() > 1 && entry.ends_with('/')) entry.remove_suffix(1);
    if (entry.starts_with('/')) entries.emplace_back(entry);
  }
  return entries;
}

std::uint64_t memory_available(std::string_view meminfo) {
  while (!meminfo.empty()) {
    std::string_view line = take_until(meminfo, '\n');
    if (take_word(line) != "MemAvailable:") continue;
    std::uint64_t kibibytes = 0;
    return read_number(take_word(line), kibibytes) ? kibibytes * 1024 : 0;
  }
  return 0;
}

bool is_of_this_pid_namespace(std::string_view pidfd_facts, pid_t pid) {
  constexpr std::string_view kKey = "\nNSpid:\t";
  const std::size_t at = pidfd_facts.find(kKey);
  if (at == std::string_view::npos || pid <= 0) return false;
  const std::string_view numbers = pidfd_facts.substr(at + kKey.size());
  return numbers.substr(0, numbers.find('\n')) == std::to_string(pid);
}

std::vector<MountPoint> mounts_in(std::string_view mountinfo) {
  std::vector<MountPoint> mounts;
  while (!mountinfo.empty()) {
    std::string_view line = take_until(mountinfo, '\n');
    // id parent major:minor root MOUNT-POINT options [optional…] - TYPE source super-options,
    // proc_pid_mountinfo(5)
    for (int skipped = 0; skipped < 3; ++skipped) take_word(line);
    const std::string_view root = take_word(line);
    const std::string_view point = take_word(line);
    const std::size_t dash = line.find(" - ");
    if (point.empty() || dash == std::string_view::npos) continue;
    line.remove_prefix(dash + 3);
    const std::string_view type = take_word(line);
    take_word(line);
    mounts.push_back({.path = unescaped(point),
                      .type = std::string(type),
                      .root = unescaped(root),
                      .options = std::string(take_word(line))});
  }
  return mounts;
}

}  // namespace sbx::host
