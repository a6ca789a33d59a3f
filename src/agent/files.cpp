#include "agent/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>

#include "agent/rendering.hpp"
#include "base/text.hpp"
#include "base/visible_text.hpp"
#include "plan/files/pattern.hpp"
#include "transfer/archive.hpp"

namespace sbx::agent {
namespace {

constexpr std::size_t kMostEntries = 500;
constexpr std::size_t kLongestMessage = 1000;
constexpr std::size_t kLongestRefusal = 5000;  // a path of 4096 bytes has its reason behind it

/// The type of a picture that clients show; empty: it is none.
std::string_view picture_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return "image/gif";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "image/webp";
  return {};
}

/// Half a character at either end does not make a text binary.
bool is_binary(std::string_view bytes) {
  constexpr std::size_t kAtEnds = 3;
  if (bytes.contains('\0')) return true;
  for (std::size_t front = 0; front <= std::min(kAtEnds, bytes.size()); ++front)
    for (std::size_t back = 0; front + back <= bytes.size() && back <= kAtEnds; ++back)
      if (is_utf8(bytes.substr(front, bytes.size() - front - back))) return false;
  return true;
}

std::string first_bytes(std::string_view bytes) {
  constexpr std::size_t kShown = 64;
  std::string text;
  for (const char each : bytes.substr(0, kShown))
    text += fmt::format("{:02x} ", static_cast<unsigned char>(each));
  return text + "\n";
}

Json result_of_part(const std::string& path, const transfer::Part& part, std::uint64_t offset) {
  const std::uint64_t end = offset + part.bytes.size();
  const std::uint64_t size = std::max(part.size, part.bytes.empty() ? 0 : end);
  std::string line = fmt::format("ok · {} · {} bytes", shown_path(path), size);
  const bool is_whole = offset == 0 && end == size;
  if (!is_whole) line += fmt::format(" · here from {} to {}", offset, end);
  if (end < size) line += fmt::format("; for more: offset {}", end);
  line += '\n';
  const std::string_view picture = picture_type(part.bytes);
  if (is_whole && !picture.empty() && part.bytes.size() <= kLargestPicture) {
    Json result = result_of_text(line);
    result["content"].push_back(
        {{"type", "image"}, {"data", base64(part.bytes)}, {"mimeType", picture}});
    return result;
  }
  if (is_binary(part.bytes))
    return result_of_text(line + "binary data, of which the first bytes are:\n" +
                          first_bytes(part.bytes));
  return result_of_text(line + below_the_line(visible_text(part.bytes)));
}

Json result_of_listing(const std::string& path, const transfer::Listing& listing) {
  const std::size_t shown = std::min(listing.entries.size(), kMostEntries);
  std::string line =
      fmt::format("ok · {} · directory of {} entries", shown_path(path), listing.entries.size());
  if (shown < listing.entries.size()) line += fmt::format(", of which {} are listed", shown);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const transfer::Listed& each = listing.entries[i];
    const bool is_file = each.type == FileType::file;
    text += fmt::format("{:>12} {}{}\n", is_file ? std::to_string(each.bytes) : "",
                        visible_line(each.name, transfer::kLongestName),
                        each.type == FileType::directory ? "/"
                        : is_file                        ? ""
                        : each.leads_to.empty()          ? std::string(" (not a regular file)")
                                                         : " -> " + visible_line(each.leads_to));
  }
  return result_of_text(line + "\n" + below_the_line(text));
}

}  // namespace

Json result_of_read(const std::string& path, const Result<client::FileWork::Read>& read,
                    std::uint64_t offset) {
  if (!read)
    return result_of_mistake(visible_line(read.error().message, kLongestMessage) +
                             ": read_file of a directory lists what is there");
  const auto* const part = std::get_if<transfer::Part>(&*read);
  return part != nullptr ? result_of_part(path, *part, offset)
                         : result_of_listing(path, std::get<transfer::Listing>(*read));
}

Json result_of_written(const std::string& path, std::size_t bytes, const Status& written) {
  if (!written)
    return result_of_mistake(visible_line(written.error().message, kLongestMessage) +
                             ": get_policy says where files can be written");
  return result_of_text(fmt::format("ok · {} · {} bytes\n", shown_path(path), bytes));
}

std::string name_of_change(std::string path, const std::string& directory) {
  if (path.starts_with(directory + "/")) path.erase(0, directory.size() + 1);
  if (path.starts_with('/')) return path;
  return fmt::format("{}", fmt::join(plan::parts_of(path), "/"));
}

Json result_of_applied(const Result<client::Applied>& applied) {
  if (!applied && applied.error().code == "call-lost")
    return result_of_mistake(applied.error().message + ": call changes to see what is left");
  if (!applied)
    return result_of_mistake(
        "nothing was applied: " + visible_line(applied.error().text(), kLongestRefusal) +
        ": changes lists the names; what may not be applied here, ask the user to apply");
  std::string names;
  for (const std::string& each : applied->done) names += "  " + visible_line(each) + "\n";
  for (const protocol::LeftFacts& each : applied->left)
    names +=
        fmt::format("  not applied: {}: {}\n", visible_line(each.path), visible_line(each.why));
  const std::size_t count = applied->done.size();
  if (!applied->left.empty())
    return result_of_mistake(fmt::format(
        "only {} applied, because something changed meanwhile: call changes for the rest\n{}",
        count, names));
  return result_of_text(fmt::format("ok · {} applied to the user's directory\n{}", count, names));
}

}  // namespace sbx::agent
