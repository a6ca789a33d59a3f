#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/notebook/notebook.hpp"
#include "protocol/cell_record.hpp"

namespace sbx::cli {

/// The outputs of one cell in the order in which they come, as nbformat has them. Untrusted text
/// in, valid outputs out.
class NotebookOutputs {
 public:
  explicit NotebookOutputs(std::uint64_t count) : count_(count) {}

  /// `name`: "stdout" or "stderr".
  void write(const std::string& name, std::string_view bytes);
  /// A value of the answer of an "sbx.cell/1". One that updates a display takes its place.
  void add_result(const protocol::CellResult& result);
  /// The value of this name comes later, and belongs here.
  void add_place(const std::string& display);
  /// What is there goes: at once, or when something comes after it.
  void clear(bool waits);
  /// An error of that answer.
  void add_error(const protocol::CellError& error);
  /// Streams of a record, where they were captured.
  void add_captured(const Json& record);
  /// How the cell ended, where that isn't its own answer.
  void add_end(const Json& outcome);

  struct Taken {
    NotebookJson outputs = NotebookJson::array();
    /// The names of the displays, and which output each is.
    std::vector<std::pair<std::string, std::size_t>> displays;
    /// New data for displays of earlier cells, by their names.
    std::vector<std::pair<std::string, NotebookJson>> updates;
  };
  [[nodiscard]] Taken take();

 private:
  struct Part {
    std::string stream;  ///< empty: `output` is whole
    std::string bytes;
    NotebookJson output;  ///< null: a place
    std::string display;  ///< its name; empty: none
  };
  void add(Part part);
  void update(const std::string& display, const NotebookJson& data);
  void clear_if_due();

  std::uint64_t count_;
  std::vector<Part> parts_;
  std::vector<std::pair<std::string, NotebookJson>> updates_;
  bool clears_next_ = false;
  std::uint64_t kept_[2] = {};
  std::uint64_t left_out_[2] = {};
};

}  // namespace sbx::cli
