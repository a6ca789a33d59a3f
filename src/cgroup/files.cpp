#include "cgroup/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/unique_fd.hpp"

namespace sbx::cgroup {
namespace {

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::string> text_of(int file) {
  std::array<char, 4096> room;
  const ssize_t got = ::pread(file, room.data(), room.size(), 0);
  if (got < 0) return std::nullopt;
  std::string text(room.data(), static_cast<std::size_t>(got));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::optional<std::string> read_text(int directory, const std::string& name) {
  const UniqueFd file(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() ? text_of(file.get()) : std::nullopt;
}

std::optional<std::uint64_t> read_number(int file) {
  const auto text = text_of(file);
  return text ? number_in(*text) : std::nullopt;
}

std::optional<std::uint64_t> read_number(int directory, const std::string& name) {
  const auto text = read_text(directory, name);
  return text ? number_in(*text) : std::nullopt;
}

std::uint64_t number_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return number_in(line.substr(key.size() + 1)).value_or(0);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return 0;
}

Status write_text(int directory, const std::string& name, std::string_view text) {
  const UniqueFd file(::openat(directory, name.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.valid()) {
    ssize_t written = ::write(file.get(), text.data(), text.size());
    while (written < 0 && errno == EINTR) written = ::write(file.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) return {};
  }
  return fail_errno(ErrorKind::setup, "setup-cgroup",
                    "cannot set " + name + " to " + std::string(text));
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(" \n");
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return false;
}

}  // namespace sbx::cgroup
