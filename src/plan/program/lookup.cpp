#include "plan/program/lookup.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <numeric>

#include "plan/files/path_text.hpp"
#include "plan/program/languages.hpp"
#include "policy/keys.hpp"

namespace sbx::plan {
namespace {

constexpr int kMostLinks = 40;  // as in the kernel, path_resolution(7)

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t path_edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> last(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      row[j + 1] = std::min({last[j + 1] + 1, row[j] + 1, last[j] + (left[i] == right[j] ? 0 : 1)});
      if (i > 0 && j > 0 && left[i] == right[j - 1] && left[i - 1] == right[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = last;
    std::swap(last, row);
  }
  return last.back();
}

/// Takes the next component off the front, skipping "."; empty at the end.
std::string take_component(std::string& rest) {
  while (true) {
    const std::size_t start = std::min(rest.find_first_not_of('/'), rest.size());
    const std::size_t end = std::min(rest.find('/', start), rest.size());
    std::string name = rest.substr(start, end - start);
    rest.erase(0, end);
    if (name != ".") return name;
  }
}

std::unexpected<Error> too_many_links(const std::string& path) {
  return fail({.kind = ErrorKind::host,
               .code = "cannot-look",
               .message = "cannot find '" + path + "'",
               .errno_value = ELOOP});
}

}  // namespace

Result<std::string> Lookup::real(const std::string& path) const {
  if (root_.empty() || !is_within(path, root_)) {
    if (path.empty() || path != last_.first) last_ = {path, SBX_TRY(files_.canonical(path))};
    return last_.second;
  }
  std::vector<Hop> hops;
  return walk(path, hops);
}

Result<std::string> Lookup::walk(const std::string& path, std::vector<Hop>& hops) const {
  const bool is_rooted = !root_.empty() && is_within(path, root_);
  const std::string top = is_rooted ? root_ : std::string();
  std::string done = top;
  std::string rest(below(path, top.empty() ? "/" : top));
  for (std::string name = take_component(rest); !name.empty(); name = take_component(rest)) {
    if (name == "..") {
      if (done != top) done.resize(done.rfind('/'));
      continue;
    }
    const std::string here = joined(done, name);
    const host::FileFacts facts = SBX_TRY(files_.look(here));
    if (facts.type != host::FileType::symlink) {
      done = here;
      continue;
    }
    if (hops.size() >= kMostLinks) return too_many_links(path);
    std::string text = SBX_TRY(files_.link_target(here));
    if (text.starts_with('/')) done = top;
    rest.insert(0, text);
    hops.emplace_back(here, std::move(text));
  }
  return done.empty() ? "/" : done;
}

std::string Lookup::in_system(const std::string& path) const {
  if (root_.empty()) return path;
  const std::string rooted = root_ + path;
  return files_.look(rooted) ? rooted : path;
}

std::optional<std::string> Lookup::find(std::string_view name) const {
  auto found = find_beyond(name, {});
  if (environment_.empty() || name.empty() || name.contains('/')) return found;
  std::string own = joined(environment_, name);
  if (!is_executable_file(own)) return found;
  if (!found || is_python_name(name) || is_python_program(*found)) return own;
  return found;
}

/// A script whose "#!" line names python, such as pip and pytest.
bool Lookup::is_python_program(const std::string& path) const {
  constexpr std::size_t kLineLimit = 256;
  const std::string head = files_.read_head(path, kLineLimit).value_or(std::string());
  return head.starts_with("#!") && head.substr(0, head.find('\n')).contains("python");
}

std::optional<std::string> Lookup::find_beyond(std::string_view name,
                                               std::string_view left_out) const {
  if (name.empty() || name.contains('/')) return std::nullopt;
  for (const std::string& directory : path_) {
    if (directory == left_out) continue;
    std::string path = joined(directory, name);
    if (is_executable_file(path)) return path;
  }
  return std::nullopt;
}

bool Lookup::is_executable_file(const std::string& path) const {
  const auto target = real(path);
  if (!target || !files_.may_execute(*target)) return false;
  const auto facts = files_.look(*target);  // on a directory, execute permission means search
  return facts && facts->type == host::FileType::regular;
}

bool Lookup::is_directory(const std::string& path) const {
  const auto target = real(path);
  if (!target) return false;
  const auto facts = files_.look(*target);
  return facts && facts->type == host::FileType::directory;
}

std::string Lookup::similar(std::string_view name) const {
  if (name.empty()) return {};
  // At most one error in three letters, two in all, and none in the first letter.
  constexpr std::size_t kMost = 2;
  std::string best;
  std::size_t least = std::min(name.size() / 3, kMost) + 1;
  for (const std::string& directory : path_) {
    const auto entries = files_.list(directory);
    if (!entries) continue;
    for (const host::Entry& entry : *entries) {
      if (!entry.name.starts_with(name.front())) continue;
      const std::size_t lengths[] = {entry.name.size(), name.size()};
      if (std::max(lengths[0], lengths[1]) - std::min(lengths[0], lengths[1]) >= least) continue;
      const std::size_t distance = path_edit_distance(name, entry.name);
      if (distance >= least || !is_executable_file(joined(directory, entry.name))) continue;
      least = distance;
      best = entry.name;
    }
  }
  return best;
}

std::string Lookup::similar_file(std::string_view typed, std::string_view path) const {
  const std::string directory = parent_of(path);
  const auto entries = files_.list(directory);
  if (!entries) return {};
  std::vector<std::string_view> names;
  for (const host::Entry& entry : *entries)
    if (!entry.name.starts_with('.') && entry.name != base_name(path)) names.push_back(entry.name);
  const std::string meant(policy::nearest(base_name(path), names));
  const auto facts = files_.look(joined(directory, meant));
  if (meant.empty() || !facts || facts->type != host::FileType::regular) return {};
  return std::string(typed.substr(0, typed.size() - base_name(typed).size())) + meant;
}

}  // namespace sbx::plan
