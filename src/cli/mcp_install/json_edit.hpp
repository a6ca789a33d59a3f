#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

/// Changes a JSON text in few places and leaves every other byte as it is: another program's
/// settings may have numbers, an order and a form that reading and writing again would lose.
namespace sbx::cli::mcp_install {

/// The names that lead to a member from the outermost object on.
using Names = std::vector<std::string>;

/// A settings file that sbx may change: one JSON object. White space alone counts as an empty one.
class JsonText {
 public:
  /// Errors: usage "not-editable" with the reason: comments, no JSON, no object, too large.
  [[nodiscard]] static Result<JsonText> read(std::string text);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// What a member has; null where it is not there.
  [[nodiscard]] const Json* find(const Names& names) const;

  /// Each makes the objects and the list on the way that are missing, and changes nothing where the
  /// text says it already. Errors: usage "not-editable": something on the way is of another kind,
  /// or is there twice.
  [[nodiscard]] Status set(const Names& names, const Json& value);
  [[nodiscard]] Status drop(const Names& names);
  [[nodiscard]] Status add_word(const Names& list, const std::string& word);
  [[nodiscard]] Status drop_word(const Names& list, const std::string& word);

 private:
  [[nodiscard]] Status become(std::string text, const Json& expected);

  std::string text_;
  Json json_;
};

}  // namespace sbx::cli::mcp_install
