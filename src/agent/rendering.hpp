#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "client/file_work.hpp"

/// What the model reads. The first lines are sbx's own; only below the line that says so stands
/// what a program has written.
namespace sbx::agent {

inline constexpr std::size_t kLargestPicture = std::size_t{1} << 20;

/// A path in one line of ours, in quotes.
[[nodiscard]] std::string shown_path(const std::string& path);

/// What a program has written, if anything, below the line that says so.
[[nodiscard]] std::string below_the_line(const std::string& text);

/// What an answer shows only a part of, and values that are more than text.
[[nodiscard]] std::vector<client::SavedFile> files_of_record(const Json& record,
                                                             std::size_t max_text);

struct Telling {
  std::string note{};      ///< begins the first line
  std::string tail{};      ///< ends it
  std::string saved_as{};  ///< how the names of the saved files begin; empty: none was saved
  std::size_t max_text = 0;
};
/// A result of a tool. `record`: sbx.run/1 or sbx.cell/1.
[[nodiscard]] Json result_of_record(const Json& record, const Telling& telling);
/// The first line of something that goes on, with what it has written so far.
[[nodiscard]] Json result_of_running(const std::string& line, std::string_view out,
                                     std::string_view err, std::size_t max_text);
/// `path`: below which they are; empty: all.
[[nodiscard]] Json result_of_changes(std::size_t count, const std::string& path,
                                     std::string_view text, std::size_t max_text);
[[nodiscard]] Json result_of_text(const std::string& text);
/// Nothing ran.
[[nodiscard]] Json result_of_mistake(const std::string& sentence);

}  // namespace sbx::agent
