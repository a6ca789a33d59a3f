#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/notebook/notebook.hpp"

namespace sbx::cli {

/// The outputs of one cell in the order in which they come, as nbformat has them. Untrusted text in, valid outputs out.
class NotebookOutputs {
 public:
  explicit NotebookOutputs(std::uint64_t count) : count_(count) {}

  /// `name`: "stdout" or "stderr".
  void write(const std::string& name, std::string_view bytes);
  /// A value or an error of the answer of an "sbx.cell/1".
  void add_result(const Json& result);
  void add_error(const Json& error);
  /// Streams of a record, where they were captured.
  void add_captured(const Json& record);
  /// How the cell ended, where that isn't its own answer.
  void add_end(const Json& outcome);

  [[nodiscard]] NotebookJson take();

 private:
  struct Part {
    std::string stream;  ///< empty: `output` is whole
    std::string bytes;
    NotebookJson output;
  };
  std::uint64_t count_;
  std::vector<Part> parts_;
  std::uint64_t kept_[2] = {};
  std::uint64_t left_out_[2] = {};
};

}  // namespace sbx::cli
