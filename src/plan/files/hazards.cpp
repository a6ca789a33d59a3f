#include "plan/files/hazards.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "base/reordering.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/pattern.hpp"
#include "plan/files/protected.hpp"

namespace sbx::plan {
namespace {

/// U+0080 to U+009F in UTF-8.
bool begins_with_c1(std::string_view text) {
  if (text.size() < 2 || static_cast<unsigned char>(text[0]) != 0xc2) return false;
  const auto second = static_cast<unsigned char>(text[1]);
  return second >= 0x80 && second <= 0x9f;
}

bool is_in_dot_git(const std::string& path) {
  return std::ranges::any_of(parts_of(path), is_dot_git);
}

}  // namespace

bool is_misleading(std::string_view name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    const auto byte = static_cast<unsigned char>(name[at]);
    const std::string_view rest = name.substr(at);
    if (byte < 0x20 || byte == 0x7f || begins_with_c1(rest) || begins_with_reordering(rest))
      return true;
  }
  return false;
}

bool leads_out(std::string_view path, std::string_view text, std::string_view directory) {
  if (text.starts_with('/')) return !is_within(normal(text), directory);
  std::string place = parent_of(path);
  while (!text.empty()) {
    const std::size_t slash = text.find('/');
    place = normal(joined(place, text.substr(0, slash)));
    if (!is_within(place, directory)) return true;  // even if it comes back
    text.remove_prefix(slash == std::string_view::npos ? text.size() : slash + 1);
  }
  return false;
}

void Hazards::look(const std::string& path, const host::FileFacts& facts) {
  if (facts.changed < began_) return;
  add(path, danger_of(path, facts));
  if (is_misleading(base_name(path)))
    add(path, "a name with control characters, or with characters that reorder text");
}

void Hazards::note_closed(const std::string& path) {
  const auto facts = files_.look(path);
  if (facts && facts->changed >= began_)
    add(path, "a directory that can't be listed, so that nothing in it was checked");
}

void Hazards::add(const std::string& path, std::string why) {
  if (why.empty()) return;
  if (outcome_.hazards.size() < kMostHazards)
    outcome_.hazards.push_back({.path = path, .why = std::move(why)});
  else
    ++outcome_.hazards_left_out;
}

std::string Hazards::danger_of(const std::string& path, const host::FileFacts& facts) {
  switch (facts.type) {
    case host::FileType::symlink:
      if (link_leads_out(path)) return "a symbolic link out of the granted directory";
      return is_in_dot_git(path) ? "a symbolic link in a .git: git writes where it leads" : "";
    case host::FileType::fifo:
      return directory_.special ? "" : "a FIFO: a program that opens it waits for another";
    case host::FileType::socket:
      return directory_.special ? "" : "a socket";
    case host::FileType::character:
    case host::FileType::block:
      return "a device";
    case host::FileType::regular:
      return danger_of_file(facts);
    default:
      return "";
  }
}

std::string Hazards::danger_of_file(const host::FileFacts& facts) {
  if ((facts.mode & (S_ISUID | S_ISGID)) != 0)
    return "a file with a set-user-ID or set-group-ID mode";
  if (facts.links < 2 || !linked_.emplace(std::pair(facts.device, facts.inode), true).second)
    return "";
  return "a hard link: what is written to it changes " + std::to_string(facts.links - 1) +
         (facts.links == 2 ? " other name" : " other names");
}

bool Hazards::link_leads_out(const std::string& path) const {
  const auto text = files_.link_target(path);
  if (!text) return false;  // gone since
  if (leads_out(path, *text, directory_.source)) return true;
  // The path may lead through another link.
  const auto real = files_.canonical(path);
  return real && !is_within(*real, directory_.source);
}

}  // namespace sbx::plan
