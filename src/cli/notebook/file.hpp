#pragma once

#include <string>

#include "base/result.hpp"
#include "changes/bring_out.hpp"
#include "cli/notebook/notebook.hpp"

namespace sbx::cli {

/// An .ipynb file, or a script whose marks divide it into cells. Errors: usage "bad-notebook";
/// host.
[[nodiscard]] Result<Notebook> read_notebook(const std::string& path);

/// The open directory of --out and the name in it.
class NotebookTarget {
 public:
  /// Errors: usage "own-notebook" (it would replace `source`); those of prepare_target().
  static Result<NotebookTarget> prepare(const std::string& directory, const std::string& source);

  [[nodiscard]] const std::string& shown() const { return shown_; }
  /// In one step: whoever looks sees the old one or the whole new one. Errors: host.
  [[nodiscard]] Status write(const std::string& text) const;

 private:
  [[nodiscard]] Status failed(int errno_value) const;

  workspace::OutDirectory directory_;
  std::string name_;
  std::string shown_;
};

}  // namespace sbx::cli
