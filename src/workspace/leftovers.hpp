#pragma once

#include <string>
#include <vector>

#include "base/held.hpp"
#include "base/unique_fd.hpp"

/// What an application that is killed leaves on the host: directories with temporary names
/// (put.hpp), in which new content waits for its names. They are noted in the state home while they
/// exist, and the next application removes them.
namespace sbx::workspace {

/// The notes of one application, locked as long as it lives. Without a state home, or without room
/// in it, nothing is noted: what a kill leaves then stays.
class Notes {
 public:
  enum class Content : bool {
    elsewhere,  ///< what is applied lies in a kept set or in a session
    here_only,  ///< once names are replaced, the host may have the only copy of it
  };
  [[nodiscard]] static Notes begin(const std::string& state_directory, Content content);
  Notes(Notes&& other) noexcept;
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  Notes& operator=(Notes&&) = delete;
  /// Nothing is left: the notes go.
  ~Notes();

  /// `path`: absolute.
  void about_to_make(const std::string& path);
  void made(const std::string& path, held::Identity identity);
  void about_to_replace();
  /// Something could not be removed: the notes stay for the next application. Its content is
  /// nowhere missed.
  void leave_for_next();

 private:
  Notes() = default;
  void open();
  void write(const std::string& text);

  std::string state_directory_;
  Content content_ = Content::elsewhere;
  bool is_open_ = false;
  UniqueFd directory_;  ///< invalid: nothing is noted
  UniqueFd file_;
  std::string name_;
};

/// Removes the noted directories of applications that are dead, if they are still the same. Gives
/// the paths of those that stay, because nothing else may have what is in them.
[[nodiscard]] std::vector<std::string> remove_leftovers(const std::string& state_directory);

/// Removes what is in a directory that sbx made. False: something stays.
bool remove_contents(int directory);

}  // namespace sbx::workspace
