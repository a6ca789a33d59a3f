#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Programs in the languages of contexts that run cells and keep their state. They have descriptor
/// 3 for requests and 4 for replies; a message is its length in decimal digits, a line feed and
/// that many bytes of JSON, or of plain text where a language has no way to read that. What they
/// say is untrusted.
namespace sbx::session {

struct Driver {
  std::string_view language;
  std::vector<std::string_view> extensions;  ///< of scripts
  std::string_view text;
  /// Sent to the interpreter alone, besides SIGINT, until its driver says that it was heard
  /// ("interrupted"); 0: none.
  int unheard_signal = 0;
  bool inspects = false;  ///< it answers questions about code that does not run
  bool waits = false;     ///< it may be started ahead of its context
  /// It can tell whether files that its start has read have changed since; else it reads none.
  bool tells_changes = false;
  bool from_file = false;  ///< else the text is an argument
  bool reads_plain =
      false;  ///< requests are NONCE COUNT, or NONCE QUESTION, a line feed and the code
  std::vector<std::string_view>
      arguments{};  ///< of the interpreter; the text follows where it is one
};

/// The driver of a language by any of its names. Errors: usage "unknown-language",
/// "no-context-language" (it has none).
[[nodiscard]] Result<const Driver*> find_driver(std::string_view language);
/// The one for a script with this name; null: there is none.
[[nodiscard]] const Driver* driver_of_script(std::string_view name);
/// "python, javascript, r and bash".
[[nodiscard]] std::string languages_of_cells();

/// The arguments that start a driver.
[[nodiscard]] std::vector<std::string> arguments_of(const Driver& driver);
/// The text as a file that nobody can change, which the interpreter has as descriptor 5; invalid
/// where it needs none.
[[nodiscard]] Result<UniqueFd> file_of(const Driver& driver);

}  // namespace sbx::session
