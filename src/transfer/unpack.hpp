#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/held.hpp"
#include "transfer/archive.hpp"
#include "workspace/allowance.hpp"
#include "workspace/changes.hpp"
#include "workspace/put.hpp"

/// Writes what an archive holds below a directory. Each file is its old or its new self at every
/// moment; no link is followed; links are made last, so that nothing of the archive is written
/// through one.
namespace sbx::transfer {

/// Something that was written.
struct Brought {
  std::string path;
  FileType type = FileType::file;
  std::uint64_t bytes = 0;
  bool replaced = false;  ///< another file or link had the name
};

enum class Trust : std::uint8_t {
  none,     ///< hostile bytes: limits hold, names come once, links lead to what was brought
  archive,  ///< it comes from sbx itself
};

struct Unpacking {
  Trust trust = Trust::none;
  /// Opens a directory that is there, by its path below the root; "." is the root.
  std::function<Result<UniqueFd>(const std::string& path)> open_directory;
  std::optional<workspace::Owner> owner{};  ///< none: the caller's
  mode_t umask = 0;                         ///< with Trust::none: of new files and directories
  workspace::OutLimits limits{};            ///< with Trust::none
  /// Why an entry must be left out; empty if it may come. None: everything may.
  std::function<std::string(const Frame& entry)> reason_against{};
  /// The path of an entry below the root, by its path in the archive. None: the same.
  std::function<std::string(const std::string& path)> name_of{};
  /// Told of what can't be written; what the sender left out is the sender's to tell. None: `left`
  /// has it all.
  std::function<void(const std::string& path, int errno_value)> refused{};
  /// Told of each file and link that was written. None: `brought` has them, with Trust::none.
  std::function<void(const Brought& done)> wrote{};
};

inline constexpr std::size_t kMostLeft = 1000;

struct Unpacked {
  std::vector<Brought> brought;       ///< with Trust::none
  workspace::OutSum sum;              ///< of files
  std::vector<workspace::Left> left;  ///< kMostLeft at most
  std::uint64_t more_left = 0;        ///< beyond them
  bool has_failures = false;          ///< one of those left out, named or not, was a failure
  std::optional<Error> broken;        ///< why the rest did not arrive
};

class Unpacker {
 public:
  Unpacker(Reader& reader, Unpacking how) : reader_(reader), how_(std::move(how)) {}

  /// Reads to the end of the archive, or to where it can't go on.
  [[nodiscard]] Unpacked run();

 private:
  struct Made {
    std::string path;
    mode_t mode = 0;
    timespec modified{};
    held::Identity identity;
  };

  Status take_all();
  Status take(const Frame& frame);
  Status take_file(const Frame& frame);
  [[nodiscard]] mode_t mode_of(int directory, const Frame& frame) const;
  Status write_file(Frame frame, workspace::NewFile& file);
  /// Reads the frames of a file to its end; false if the sender took it back. `size`: takes the
  /// bytes that came.
  Result<bool> take_content(int file, int& errno_value, std::uint64_t* size = nullptr);
  Status take_directory(const Frame& frame);
  void make_links();
  void finish_directories();

  /// Counts an entry against what a hostile sender may send; false if it is left out.
  [[nodiscard]] Result<bool> admit(const Frame& frame);
  [[nodiscard]] std::string reason_against(const Frame& frame) const;
  [[nodiscard]] Result<int> directory_of(const std::string& path);
  /// Removes what a killed sbx left in a directory.
  void clean(int directory) const;
  /// Opens a directory that is there. Errors: host "replaced", another one than the first time.
  [[nodiscard]] Result<UniqueFd> open_same(const std::string& path);
  /// Makes a directory, or takes the one that is there.
  [[nodiscard]] Status make_directory(int directory, const Frame& frame);
  /// Where a link leads, in the tree that was brought. False: out of it, or nowhere.
  [[nodiscard]] bool leads_to_brought(const Frame& link) const;

  void leave(const std::string& path, std::string why, bool failed, int errno_value = 0);
  void leave(const std::string& path, const Error& error) {
    leave(path, error.text(), true, error.errno_value);
  }
  void leave(const Frame& fault);
  /// Something else has the name: false, and it is said.
  [[nodiscard]] bool is_free(int directory, const std::string& path);
  void note_brought(const Frame& frame, FileType type, bool replaced = false);

  Reader& reader_;
  Unpacking how_;
  Unpacked done_;
  std::vector<Frame> links_;
  std::vector<Made> made_;
  std::unordered_map<std::string, FileType> known_;       ///< what was brought; with Trust::none
  std::unordered_map<std::string, std::string> leading_;  ///< links that are to be made: their text
  std::set<std::string, std::less<>> shut_;               ///< directories that were left out
  std::unordered_map<std::string, held::Identity>
      directories_;        ///< by path, as they were first opened or made
  std::string open_path_;  ///< of open_, empty if none
  UniqueFd open_;
  std::unordered_set<std::string> cleaned_;
  std::uint64_t entries_ = 0;
  std::uint64_t remembered_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint64_t directory_count_ = 0;
};

}  // namespace sbx::transfer
