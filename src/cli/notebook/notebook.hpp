#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

/// Notebooks, nbformat 4: read from untrusted files, and written with new outputs.
namespace sbx::cli {

/// Sorted by key, as Jupyter writes notebooks. Many keys in one object cost n log n.
using NotebookJson = nlohmann::json;

struct NotebookCell {
  enum class Kind : std::uint8_t { code, markdown, raw };
  Kind kind = Kind::code;
  std::string id;
  std::string source;
  NotebookJson metadata = NotebookJson::object();
  NotebookJson attachments;  ///< null: none
  std::size_t number = 0;    ///< of all cells, from 1
  std::size_t line = 0;      ///< of a script: its first line there; 0: not of a script

  /// What follows from its tags; unknown ones are kept.
  bool may_raise = false;       ///< "raises-exception"
  bool is_skipped = false;      ///< "skip-execution"
  bool has_parameters = false;  ///< "parameters"
  bool has_given_parameters =
      false;  ///< "injected-parameters", as papermill names what it has put in

  NotebookJson outputs = NotebookJson::array();
  std::optional<std::uint64_t> count;  ///< empty: it did not run

  /// Reads the tags of the metadata, which are well-formed.
  void heed_tags();
  /// Code that is more than blanks, and not to be skipped.
  [[nodiscard]] bool runs() const;
};

struct Notebook {
  NotebookJson metadata = NotebookJson::object();
  std::vector<NotebookCell> cells;
  std::string language;  ///< that its metadata name, as they do; empty: none
};

/// A notebook's text. Its outputs are skipped. `shown`: its path, for messages. Errors: usage
/// "bad-notebook", "old-notebook".
[[nodiscard]] Result<Notebook> parse_notebook(std::string_view text, const std::string& shown);

/// An id that no cell has, made from `wanted`: the same in each run.
[[nodiscard]] std::string free_cell_id(const std::vector<NotebookCell>& cells, std::string wanted);

/// Fills in what names the language, in the metadata of a notebook that has nothing there.
void name_language(Notebook& notebook, const std::string& language);

/// The file: nbformat 4.5.
[[nodiscard]] std::string notebook_text(const Notebook& notebook);

/// Whether it is a list of tags as the format has them.
[[nodiscard]] bool is_tags(const NotebookJson& value);
/// Whether values of this MIME type are JSON, not text.
[[nodiscard]] bool holds_json(std::string_view mime);
/// Its lines, each with its line feed.
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);
/// Text as the list of its lines, as notebooks have it.
[[nodiscard]] NotebookJson lines_of(std::string_view text);

}  // namespace sbx::cli
