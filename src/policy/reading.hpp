#pragma once

#include <string>
#include <string_view>

#include "policy/context.hpp"
#include "policy/entries.hpp"
#include "policy/keys.hpp"
#include "policy/syntax.hpp"

namespace sbx::policy {

/// One text while it is read: where its values come from, and what is found wrong with it.
class Reading {
 public:
  struct TextSource {
    std::string file;  ///< as messages name it; on the command line the option
    Layer layer = Layer::file;
    PathBase base;
  };
  /// `text` must outlive the reading; on the command line it is what was typed after the option.
  Reading(std::string_view text, TextSource place, Findings& findings)
      : text_(text), place_(std::move(place)), findings_(findings) {}

  [[nodiscard]] const TextSource& place() const { return place_; }
  [[nodiscard]] const PathBase& base() const { return place_.base; }
  [[nodiscard]] bool typed() const { return place_.layer == Layer::command_line; }
  [[nodiscard]] Origin origin(int line, int column) const;
  [[nodiscard]] Origin origin(const Node& node) const { return origin(node.line, node.column); }

  /// Adds a finding at a position of the text.
  void report(int line, int column, Problem problem);
  void report(const Node& at, Problem problem) { report(at.line, at.column, std::move(problem)); }
  /// The same, the message beginning with the key.
  void report(const Key& key, const Node& at, Problem problem);
  /// "write memory = "512M"", in the form that this text uses.
  [[nodiscard]] std::string cure(std::string_view key_name, std::string_view toml) const;
  /// True when a text has so many findings that more would not help.
  [[nodiscard]] bool overwhelmed() const;

 private:
  std::string_view text_;
  TextSource place_;
  Findings& findings_;
  std::size_t found_ = 0;
};

/// Reports members of a table that are not among `known`; `path` is the table's dotted name.
void report_unknown(const Node::Table& table, std::span<const std::string_view> known,
                    std::string_view path, Reading& reading);

}  // namespace sbx::policy
