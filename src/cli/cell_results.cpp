#include "cli/cell_results.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"

namespace sbx::cli {
namespace {

/// Of one cell: its values are as many as the program likes.
constexpr std::size_t kMostFiles = 1000;

using Ending = std::pair<std::string_view, std::string_view>;
constexpr auto kEndings = std::to_array<Ending>({
    {"image/png", ".png"},
    {"image/jpeg", ".jpg"},
    {"image/gif", ".gif"},
    {"image/webp", ".webp"},
    {"image/svg+xml", ".svg"},
    {"application/pdf", ".pdf"},
    {"text/html", ".html"},
    {"text/markdown", ".md"},
    {"text/latex", ".tex"},
    {"application/vnd.sbx.table+json", ".table.json"},
    {"application/json", ".json"},
    {"application/javascript", ".js"},
});

std::string_view ending_of(std::string_view mime) {
  for (const auto& [known, ending] : kEndings)
    if (mime == known) return ending;
  return mime.ends_with("json") ? ".json" : ".txt";
}

bool is_binary(std::string_view mime) {
  return (mime.starts_with("image/") && mime != "image/svg+xml") || mime == "application/pdf" ||
         mime.starts_with("audio/") || mime.starts_with("video/");
}

/// A value as the bytes of its file.
std::string bytes_of(const std::string& mime, const Json& value) {
  if (!value.is_string()) return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string& text = value.get_ref<const std::string&>();
  if (!is_binary(mime)) return text;
  return base64_bytes(text).value_or(text);
}

}  // namespace

Result<CellResults> CellResults::open(const std::string& directory) {
  std::string path = directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();  // lstat(2) would follow the link
  // A program that may write here could lead the files anywhere by a link.
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode))
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "out-unusable",
                      .message = "cannot write values to '" + printable(directory) +
                                 "': it is a symbolic link, which is not followed",
                      .hint = "name the directory itself: --results DIR"});
  // It looks for a link too: this one may be younger.
  workspace::OutDirectory open = SBX_TRY(workspace::prepare_target(directory));
  return CellResults(directory, std::move(open));
}

Result<std::string> CellResults::write(const std::string& name, const std::string& ending,
                                       const std::string& bytes) const {
  constexpr int kMost =
      1000;  ///< files of one name: a context that was restarted counts from 1 again
  for (int i = 1; i <= kMost; ++i) {
    std::string file = name;
    if (i > 1) file += "-again" + std::to_string(i);
    file += ending;
    const UniqueFd open(::openat(directory_.get(), file.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!open.valid() && errno == EEXIST) continue;
    if (!open.valid()) break;
    SBX_TRY(sys::write_all(open.get(), bytes));
    return name_ + "/" + file;
  }
  return fail_errno(ErrorKind::host, "cannot-write",
                    "cannot write '" + name_ + "/" + name + ending + "'");
}

Status CellResults::save(protocol::CellRecord& record, bool pictures_only) const {
  if (!record.answer) return {};
  const std::string count = std::to_string(record.answer->count);
  std::size_t number = 0;
  std::size_t written = 0;
  std::size_t left_out = 0;
  for (protocol::CellResult& result : record.answer->results) {
    ++number;
    ByName<std::string> files;
    for (const auto& [mime, value] : result.data) {
      if (mime == "text/plain" || (pictures_only && !mime.starts_with("image/"))) continue;
      if (written == kMostFiles) {
        ++left_out;
        continue;
      }
      ++written;
      const std::string name = record.session.context + "-" + count + "-" + std::to_string(number);
      files.emplace_back(mime,
                         SBX_TRY(write(name, std::string(ending_of(mime)), bytes_of(mime, value))));
    }
    if (!files.empty()) result.file = std::move(files);
  }
  if (left_out == 0) return {};
  return fail(Error{.kind = ErrorKind::host,
                    .code = "cannot-write",
                    .message = "a cell is given " + std::to_string(kMostFiles) +
                               " files, and it showed " + std::to_string(left_out) + " values more",
                    .hint = "show fewer in one cell, or let it write a file, for sbx session get"});
}

}  // namespace sbx::cli
