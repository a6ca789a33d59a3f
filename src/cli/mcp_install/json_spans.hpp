#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Where the parts of a JSON text stand. Only for a text that read_json() has taken: nothing is
/// checked again.
namespace sbx::cli::mcp_install {

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// A member of an object, or an item of a list.
struct Part {
  std::string name;  ///< empty in a list
  Span whole;        ///< from the name on
  Span value;
};

/// The position of the first character that is not white space.
[[nodiscard]] std::size_t past_space(std::string_view text, std::size_t at);
/// What the object or list that begins at `at` holds.
[[nodiscard]] std::vector<Part> parts_at(std::string_view text, std::size_t at);

/// The texts with a part more, at the end of the container at `at`, in the form of its neighbours;
/// with another value; without it.
[[nodiscard]] std::string with_part(const std::string& text, std::size_t at,
                                    const std::string& part);
[[nodiscard]] std::string with_value(const std::string& text, const Part& part,
                                     const std::string& value);
[[nodiscard]] std::string without_part(const std::string& text, std::size_t at, std::size_t index);

}  // namespace sbx::cli::mcp_install
