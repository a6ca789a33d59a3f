#pragma once

#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "cli/mcp_install/json_edit.hpp"

/// Changes a TOML text by whole blocks between two comment lines; what others wrote stays as it is.
namespace sbx::cli::mcp_install {

/// A table, or a table of tables, that sbx appends.
struct Block {
  std::string about;  ///< what the marks say: "sbx mcp: server sbx"
  Names names;        ///< of the table
  std::string lines;  ///< headers and values, each with its newline
  /// What the text has is known to be of sbx, also without the marks: Codex keeps only some
  /// comments when it writes its file anew.
  bool is_own = false;
};
/// A block as it is appended.
[[nodiscard]] std::string text_of(const Block& block);

class TomlText {
 public:
  /// Errors: usage "not-editable": no TOML.
  [[nodiscard]] static Result<TomlText> read(std::string text);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// What a key has; null where it is not there. Dates are null values.
  [[nodiscard]] const Json* find(const Names& names) const;

  /// Puts the block at the end, in place of one with the same marks, or of the own one. Errors:
  /// usage "not-editable": the table is there otherwise, or the text would not mean the same.
  [[nodiscard]] Status put(const Block& block);
  /// Removes the block with such marks, or the own one, where there is one. Errors as put().
  [[nodiscard]] Status drop(const Block& block);

 private:
  [[nodiscard]] bool take(std::string text, const Names& names);

  std::string text_;
  Json json_;
};

}  // namespace sbx::cli::mcp_install
