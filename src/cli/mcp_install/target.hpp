#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::cli::mcp_install {

/// A settings file below a directory of the user's, held by the directory it lies in: another
/// process may move and replace names meanwhile.
class Target {
 public:
  /// `root`: an absolute directory; `below`: a path without "..". Links are followed as far as they
  /// lead to something below the root. Errors: usage "not-editable" (a link leads out; not a
  /// regular file; too large); host "cannot-open".
  [[nodiscard]] static Result<Target> open(const std::string& root, const std::string& below);

  [[nodiscard]] const std::string& path() const { return path_; }  ///< as it was asked for
  [[nodiscard]] bool exists() const { return facts_.st_nlink > 0; }
  [[nodiscard]] const std::string& text() const { return text_; }  ///< empty where it is not there

  /// Puts a whole file in its place in one step, with the mode and owner of the old one, and makes
  /// the directories that are missing. Errors: host "cannot-write"; usage
  /// "not-editable": it has changed meanwhile.
  [[nodiscard]] Status replace(const std::string& text);

 private:
  [[nodiscard]] Status read();
  [[nodiscard]] Status make_directories();
  [[nodiscard]] bool is_as_read() const;
  [[nodiscard]] Status write(const std::string& temporary, const std::string& text) const;

  std::string path_;
  UniqueFd directory_;
  std::vector<std::string> missing_;  ///< directories to be made in it first
  std::string name_;
  std::string text_;
  struct stat facts_{};
};

}  // namespace sbx::cli::mcp_install
