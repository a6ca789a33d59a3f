#include "changes/diff.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "base/sys.hpp"
#include "workspace/tree.hpp"

namespace sbx::changes {
namespace {

constexpr std::size_t kLongestText = 1 << 20;
constexpr std::size_t kContext = 3;
constexpr int kMostEdits = 1000;  // memory is the square of it

using Lines = std::vector<std::string_view>;

enum class Newlines : std::uint8_t { cut, kept };

Lines lines_of(std::string_view text, Newlines newlines) {
  Lines lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const bool with_it = newlines == Newlines::kept && end != std::string_view::npos;
    lines.push_back(text.substr(0, with_it ? end + 1 : end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines;
}

/// One line of the way from the old text to the new.
struct Edit {
  char mark = ' ';
  std::size_t line = 0;  ///< of the old text for ' ' and '-', of the new for '+'
};

/// Myers, "An O(ND) Difference Algorithm" (1986), greedy, with the whole trace. Nothing when more
/// than kMostEdits are needed.
class Shortest {
 public:
  Shortest(std::span<const std::string_view> before, std::span<const std::string_view> after)
      : a_(before), b_(after) {}

  bool find(std::vector<Edit>& edits) {
    const int n = static_cast<int>(a_.size());
    const int m = static_cast<int>(b_.size());
    const int limit = std::min(n + m, kMostEdits);
    std::vector<int> furthest(static_cast<std::size_t>(2 * limit + 3), 0);
    const auto at = [&](int k) -> int& {
      return furthest[static_cast<std::size_t>(k + limit + 1)];
    };
    for (int d = 0; d <= limit; ++d) {
      for (int k = -d; k <= d; k += 2) {
        int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
        while (x < n && x - k < m && x - k >= 0 &&
               a_[static_cast<std::size_t>(x)] == b_[static_cast<std::size_t>(x - k)])
          ++x;
        at(k) = x;
        if (x >= n && x - k >= m) {
          trace_.emplace_back(furthest.begin() + limit + 1 - d, furthest.begin() + limit + 2 + d);
          walk_back(edits, d);
          return true;
        }
      }
      trace_.emplace_back(furthest.begin() + limit + 1 - d, furthest.begin() + limit + 2 + d);
    }
    return false;
  }

 private:
  /// How far diagonal k came in d edits.
  [[nodiscard]] int reached(int d, int k) const {
    return k < -d || k > d ? -1
                           : trace_[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d)];
  }

  void walk_back(std::vector<Edit>& edits, int d) const {
    int x = static_cast<int>(a_.size());
    int y = static_cast<int>(b_.size());
    const auto same_until = [&](int start) {
      while (x > start) {
        --x, --y;
        edits.push_back({' ', static_cast<std::size_t>(x)});
      }
    };
    for (; d > 0; --d) {
      const int k = x - y;
      const bool inserts = k == -d || (k != d && reached(d - 1, k - 1) < reached(d - 1, k + 1));
      const int from = inserts ? reached(d - 1, k + 1) : reached(d - 1, k - 1);
      same_until(inserts ? from : from + 1);
      if (inserts)
        edits.push_back({'+', static_cast<std::size_t>(--y)});
      else
        edits.push_back({'-', static_cast<std::size_t>(--x)});
    }
    same_until(0);
    std::ranges::reverse(edits);
  }

  std::span<const std::string_view> a_;
  std::span<const std::string_view> b_;
  std::vector<std::vector<int>> trace_;
};

std::vector<Edit> edits_between(const Lines& before, const Lines& after) {
  std::size_t head = 0;
  while (head < before.size() && head < after.size() && before[head] == after[head]) ++head;
  std::size_t tail = 0;
  while (tail < before.size() - head && tail < after.size() - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
    ++tail;
  const std::span<const std::string_view> old_part(before.data() + head,
                                                   before.size() - head - tail);
  const std::span<const std::string_view> new_part(after.data() + head, after.size() - head - tail);
  std::vector<Edit> middle;
  if (!Shortest(old_part, new_part).find(middle)) {
    for (std::size_t i = 0; i < old_part.size(); ++i) middle.push_back({'-', i});
    for (std::size_t i = 0; i < new_part.size(); ++i) middle.push_back({'+', i});
  }
  std::vector<Edit> edits;
  for (std::size_t i = 0; i < head; ++i) edits.push_back({' ', i});
  for (const Edit& edit : middle) edits.push_back({edit.mark, edit.line + head});
  for (std::size_t i = before.size() - tail; i < before.size(); ++i) edits.push_back({' ', i});
  return edits;
}

std::string range_text(std::size_t first, std::size_t count) {
  return std::to_string(count == 0 ? first : first + 1) +
         (count == 1 ? "" : "," + std::to_string(count));
}

std::vector<std::string> diff_of(const Lines& old_lines, const Lines& new_lines, std::size_t most) {
  const std::vector<Edit> edits = edits_between(old_lines, new_lines);
  std::vector<std::string> text;
  std::size_t left_out = 0;
  std::size_t at = 0;
  std::size_t old_at = 0;
  std::size_t new_at = 0;
  const auto step = [&](const Edit& edit) {
    old_at += edit.mark != '+' ? 1 : 0;
    new_at += edit.mark != '-' ? 1 : 0;
  };
  while (at < edits.size()) {
    std::size_t change = at;
    while (change < edits.size() && edits[change].mark == ' ') ++change;
    if (change == edits.size()) break;
    const std::size_t begin = std::max(at, change - std::min(change, kContext));
    // A hunk goes on as long as no more than twice the context is the same.
    std::size_t last = change;
    for (std::size_t i = change; i < edits.size() && i <= last + 2 * kContext; ++i)
      if (edits[i].mark != ' ') last = i;
    const std::size_t end = std::min(edits.size(), last + 1 + kContext);
    for (; at < begin; ++at) step(edits[at]);
    const std::size_t old_first = old_at;
    const std::size_t new_first = new_at;
    const std::size_t header = text.size();
    text.emplace_back();
    for (; at < end; ++at) {
      const Edit& edit = edits[at];
      const std::string_view line = (edit.mark == '+' ? new_lines : old_lines)[edit.line];
      if (text.size() < most)
        text.push_back(edit.mark + std::string(line));
      else
        ++left_out;
      step(edit);
    }
    text[header] = "@@ -" + range_text(old_first, old_at - old_first) + " +" +
                   range_text(new_first, new_at - new_first) + " @@";
    if (left_out > 0) {
      for (; at < edits.size(); ++at) left_out += edits[at].mark != ' ' ? 1 : 0;
      text.push_back("… " + std::to_string(left_out) + " more lines …");
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> unified_diff(const std::string& before, const std::string& after,
                                      std::size_t most) {
  return diff_of(lines_of(before, Newlines::cut), lines_of(after, Newlines::cut), most);
}

std::vector<std::string> added_lines(const std::string& text, std::size_t most) {
  const Lines lines = lines_of(text, Newlines::cut);
  std::vector<std::string> added;
  for (const std::string_view line : std::span(lines).first(std::min(most, lines.size())))
    added.push_back("+" + std::string(line));
  if (lines.size() > most)
    added.push_back("… " + std::to_string(lines.size() - most) + " more lines …");
  return added;
}

std::vector<std::string> exact_diff(const std::string& before, const std::string& after) {
  return diff_of(lines_of(before, Newlines::kept), lines_of(after, Newlines::kept),
                 std::numeric_limits<std::size_t>::max());
}

bool is_text(const std::string& content) {
  return content.find('\0') == std::string::npos;
}

Sides sides_of(const Copy& copy, const Change& change) {
  Sides sides;
  if (copy.stored)
    if (const auto was = copy.stored->before.find(change.path); was != copy.stored->before.end())
      sides.bytes_before = was->second.bytes;
  const workspace::LayerPath place = place_of(copy, change.path);
  if (place.layer == nullptr || !place.layer->lower.valid()) return sides;
  const auto old_file = workspace::open_file(place.layer->lower.get(), place.path);
  if (!old_file) return sides;
  struct stat facts{};
  if (::fstat(old_file->get(), &facts) == 0)
    sides.bytes_before = static_cast<std::uint64_t>(facts.st_size);
  if (change.type != FileType::file || sides.bytes_before > kLongestText ||
      change.bytes > kLongestText)
    return sides;
  const auto new_file = open_content(copy, change);
  if (!new_file) return sides;
  auto before = sys::read_all(old_file->get(), kLongestText);
  auto after = sys::read_all(new_file->get(), kLongestText);
  if (!before || !after || !is_text(*before) || !is_text(*after)) return sides;
  sides.before = std::move(*before);
  sides.after = std::move(*after);
  sides.readable = true;
  return sides;
}

std::string created_text(const Copy& copy, const Change& change) {
  if (change.type != FileType::file || change.bytes > kLongestText) return {};
  const auto file = open_content(copy, change);
  if (!file) return {};
  auto text = sys::read_all(file->get(), kLongestText);
  return text && is_text(*text) ? std::move(*text) : std::string();
}

std::string link_text(const Copy& copy, const Change& change) {
  const bool has_text =
      change.change == ChangeKind::created || change.change == ChangeKind::modified;
  if (change.type != FileType::link || !has_text) return {};
  return link_content(copy, change).value_or(std::string());
}

}  // namespace sbx::changes
