#include "cli/notebook/percent_cells.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/letters.hpp"

namespace sbx::cli {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\f\v";

bool is_blank(std::string_view text) {
  return text.find_first_not_of(kWhiteSpace) == std::string_view::npos;
}

class Script {
 public:
  explicit Script(std::string_view comment) : comment_(comment) {}

  Notebook read(std::string_view text) {
    cell_ = {.line = 1};
    std::size_t line = 0;
    for (const std::string_view now : split_lines(text)) {
      ++line;
      if (const auto mark = mark_of(now)) {
        end_cell();
        begin_cell(*mark, line + 1);
      } else {
        cell_.source += now;
      }
    }
    end_cell();
    return std::move(notebook_);
  }

 private:
  /// What follows "# %%" on its line; nothing where the line is not a mark.
  [[nodiscard]] std::optional<std::string_view> mark_of(std::string_view line) const {
    if (!line.starts_with(comment_)) return std::nullopt;
    line.remove_prefix(comment_.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (!line.starts_with("%%")) return std::nullopt;
    line.remove_prefix(2);
    // "#%%time" is a magic that was commented out.
    if (!line.empty() && kWhiteSpace.find(line.front()) == std::string_view::npos)
      return std::nullopt;
    return trimmed(line, kWhiteSpace);
  }

  void begin_cell(std::string_view mark, std::size_t line) {
    cell_ = {.line = line};
    is_marked_ = true;
    if (mark.find("[markdown]") != std::string_view::npos ||
        mark.find("[md]") != std::string_view::npos)
      cell_.kind = NotebookCell::Kind::markdown;
    if (mark.find("[raw]") != std::string_view::npos) cell_.kind = NotebookCell::Kind::raw;
    const auto tags = mark.find("tags=[");
    const auto end = mark.find(']', tags == std::string_view::npos ? 0 : tags);
    if (tags == std::string_view::npos || end == std::string_view::npos) return;
    const auto list = NotebookJson::parse(mark.substr(tags + 5, end - tags - 4), nullptr,
                                          /*allow_exceptions=*/false);
    if (!is_tags(list)) return;
    cell_.metadata["tags"] = list;
    cell_.heed_tags();
  }

  void end_cell() {
    NotebookCell& cell = cell_;
    if (!is_marked_ && is_blank(cell.source)) return;
    // A header of comments, such as #! or jupytext's own, is not a cell to run.
    if (!is_marked_ && is_comment(cell.source)) cell.kind = NotebookCell::Kind::raw;
    if (cell.kind == NotebookCell::Kind::markdown && is_comment(cell.source)) uncomment();
    const auto last = cell.source.find_last_not_of(kWhiteSpace);
    cell.source.erase(last == std::string::npos ? 0 : last + 1);
    cell.number = notebook_.cells.size() + 1;
    cell.id = fmt::format("cell-{}", cell.number);
    notebook_.cells.push_back(std::move(cell));
  }

  [[nodiscard]] bool is_comment(std::string_view text) const {
    return std::ranges::all_of(split_lines(text), [this](std::string_view line) {
      return is_blank(line) || line.starts_with(comment_);
    });
  }

  void uncomment() {
    std::string text;
    for (std::string_view line : split_lines(cell_.source)) {
      if (line.starts_with(comment_)) line.remove_prefix(comment_.size());
      if (line.starts_with(' ')) line.remove_prefix(1);
      text += line;
    }
    cell_.source = std::move(text);
  }

  std::string_view comment_;
  Notebook notebook_;
  NotebookCell cell_;
  bool is_marked_ = false;
};

}  // namespace

Notebook cells_of_script(std::string_view text, std::string_view comment) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return Script(comment).read(text);
}

}  // namespace sbx::cli
