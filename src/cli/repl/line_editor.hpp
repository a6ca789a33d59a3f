#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/repl/questions.hpp"

namespace sbx::cli {

/// How reading a line ended.
struct Line {
  enum class End : std::uint8_t { line, interrupted, end_of_input, signal };
  End end = End::line;
  std::string text;  ///< of more than one line where one was pasted or recalled
  int signal = 0;    ///< that ends this process
};

/// Reads lines from the terminal on standard input, with libedit. Nothing that comes from a sandbox
/// gets here unfiltered, and no configuration of libedit is read.
class LineEditor {
 public:
  using Complete = std::function<Questions::Completion(const std::string& before)>;
  /// `signals`: a signalfd of those that end this process. Nothing where libedit has no use for the
  /// terminal.
  [[nodiscard]] static std::optional<LineEditor> open(int signals, Complete complete);
  LineEditor(LineEditor&&) noexcept;
  LineEditor& operator=(LineEditor&&) noexcept;
  ~LineEditor();

  /// What the arrow keys bring back.
  void remember(const std::string& text);
  /// `indent` is typed already.
  [[nodiscard]] Line read(const std::string& prompt, const std::string& indent);
  /// Moves to the beginning of a line, after output that may have ended within one, and back to the
  /// usual colours.
  void begin_fresh_line() const;

 private:
  class Terminal;
  explicit LineEditor(std::unique_ptr<Terminal> terminal);
  std::unique_ptr<Terminal> terminal_;
};

/// `matches` in columns for a terminal so wide, without the part of their names that ends with the
/// last point of `replaces`.
[[nodiscard]] std::string in_columns(const Questions::Completion& completion, std::size_t width);

}  // namespace sbx::cli
