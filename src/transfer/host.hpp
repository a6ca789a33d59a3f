#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "transfer/unpack.hpp"
#include "workspace/allowance.hpp"
#include "workspace/changes.hpp"
#include "workspace/put.hpp"

/// The host's end of a transfer between the host and a live sandbox. These functions wait for the
/// other end, inside_main() in the sandbox, for as long as it lives: its end is theirs. Descriptors
/// should be pipes that block, and SIGPIPE and SIGXFSZ must be ignored. Paths in results are bytes
/// from the sandbox: print them with printable().
namespace sbx::transfer {

/// Arguments of inside_main(). Several sources, or one that is the contents of a directory
/// (`dir/.`), go into the target; an empty target is the working directory. Errors: usage
/// "bad-input", two sources with one name.
[[nodiscard]] Result<std::vector<std::string>> put_arguments(
    const std::vector<std::string>& sources, const std::string& target);
/// Errors: usage "bad-input", two paths with one name.
/// `place`: the canonical path of the target, which is not copied into itself where the sandbox
/// shows it.
[[nodiscard]] Result<std::vector<std::string>> get_arguments(const std::vector<std::string>& paths,
                                                             const workspace::OutLimits& limits,
                                                             const std::string& place = {});
[[nodiscard]] std::vector<std::string> ls_arguments(const std::string& path,
                                                    std::uint64_t depth = 1);
/// A part of a file.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t most = 0;  ///< bytes; 0: to its end
};
[[nodiscard]] std::vector<std::string> read_arguments(const std::string& path, Range range);

/// `write`: what is read from `from`, to its end, becomes one file; close `to` afterwards, then
/// read the report. Errors: host.
[[nodiscard]] Status send_stream(int to, int from, Passed passed = {});

/// What was sent, and what was not, with the reason.
struct Sent {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  std::vector<workspace::Left> left;  ///< kMostLeft at most
  std::uint64_t more_left = 0;
  bool has_failures = false;
  bool is_whole = false;  ///< the other end took it all; if not, read_report() has the reason
};
/// `put`: files and directories of the host, named by the user. A link that is named is followed;
/// one in a directory is sent if it leads to something in that directory. Close `to` afterwards,
/// then read the report.
[[nodiscard]] Sent send_files(int to, const std::vector<std::string>& sources, Passed passed = {});

/// What the sandbox's end says that it wrote.
struct Report {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  std::vector<Brought> written;       ///< the first ones; paths as the target was typed
  std::vector<workspace::Left> left;  ///< kMostLeft at most
  std::uint64_t more_left = 0;
};
/// Errors: host "broken-transfer".
[[nodiscard]] Result<Report> read_report(int from);

struct Receiving {
  std::vector<std::string> paths;  ///< as they were given to get_arguments(): nothing else may come
  workspace::OutLimits limits;
  std::string place;                      ///< canonical path of the target
  std::vector<std::string> policy_files;  ///< and links to them, canonical: never replaced
  workspace::Waiting waiting;             ///< while another sbx brings files out there
  Passed passed{};
};
/// `get`: writes what arrives into an open directory, workspace::prepare_target(), by the rules of
/// `--out`. Protected names are left out unless `paths` names the file itself. A link is made when
/// it leads to something that was brought out too. Errors: host, before anything was read; what
/// comes later is in `broken`.
[[nodiscard]] Result<Unpacked> receive_files(int from, int target, const Receiving& what);

/// `read`: one file, or a part of it.
struct OneFile {
  std::string path;   ///< in the sandbox, as it was typed
  std::string shown;  ///< where it goes, for messages
  std::uint64_t max_bytes = 0;
  Passed passed{};
};
/// Into memory. `size`: of the whole file, as far as it has one. Errors: the same.
struct Part {
  std::string bytes;
  std::uint64_t size = 0;
};
[[nodiscard]] Result<Part> receive_part(int from, const OneFile& what);
/// To a descriptor: how many bytes came. Errors: host, with what stood in the way.
[[nodiscard]] Result<std::uint64_t> receive_stream(int from, int to, const OneFile& what);
/// To a name in an open directory, workspace::prepare_target(): the file is there when it is whole.
[[nodiscard]] Result<Brought> receive_file(int from, int directory, const std::string& name,
                                           const OneFile& what);

/// `stat`, `mkdir`, `mv` and `rm`: the entry that was asked for, or the end. `path`: as it was
/// typed. Errors: host, with what stood in the way in the sandbox; `cure` says what to do where the
/// kernel answered so, or nothing.
[[nodiscard]] Result<Frame> read_answer(
    int from, const std::string& path,
    const std::function<std::string(int errno_value)>& cure = {});

/// An entry of a directory in the sandbox.
struct Listed {
  std::string name;
  FileType type = FileType::file;
  mode_t mode = 0;
  std::uint64_t bytes = 0;
  timespec modified{};
  std::string leads_to{};  ///< of a link
  std::string owner{};     ///< a name, or a number; as the sandbox knows it
  std::string group{};
};
struct Listing {
  std::vector<Listed> entries;  ///< by name
  std::vector<workspace::Left> left;
  bool is_cut = false;  ///< there are more than `most`
};
/// `ls` to a depth; names are relative to the directory. Errors: host "broken-transfer".
[[nodiscard]] Result<Listing> read_listing(int from, std::uint64_t depth = 1,
                                           std::size_t most = 100'000);

}  // namespace sbx::transfer
