#include "base/links.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sbx {
namespace {

constexpr std::size_t kMostLinks = 40;

/// Puts the parts of a path on a stack, the first on top.
void push_parts(std::string_view path, std::vector<std::string>& ahead) {
  const auto bottom = static_cast<std::ptrdiff_t>(ahead.size());
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (!part.empty() && part != ".") ahead.emplace_back(part);
  }
  std::reverse(ahead.begin() + bottom, ahead.end());
}

}  // namespace

std::vector<std::string> links_on_the_way(std::string_view path, const LinkText& link_text) {
  std::vector<std::string> links;
  std::vector<std::string> ahead;
  push_parts(path, ahead);
  std::string place;  // canonical; empty: the root
  while (!ahead.empty() && links.size() < kMostLinks) {
    const std::string part = std::move(ahead.back());
    ahead.pop_back();
    if (part == "..") {
      place.resize(place.empty() ? 0 : place.rfind('/'));
      continue;
    }
    std::string next = place + "/" + part;
    const auto text = link_text(next);
    if (!text) {
      place = std::move(next);
      continue;
    }
    if (text->starts_with('/')) place.clear();
    push_parts(*text, ahead);
    links.push_back(std::move(next));
  }
  return links;
}

}  // namespace sbx
