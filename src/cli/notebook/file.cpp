#include "cli/notebook/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/notebook/percent_cells.hpp"
#include "cli/usage.hpp"
#include "plan/program/languages.hpp"
#include "session/drivers.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 20;

/// What begins the marks between cells of a script.
std::string_view comment_of(std::string_view language) {
  return language == "javascript" ? "//" : "#";
}

constexpr const char* kTakes = "--cells takes an .ipynb file, or a script with # %% lines";

/// A file that can be read to its end. Errors: usage "bad-notebook", or as open_to_read.
Result<UniqueFd> open_source(const std::string& path) {
  if (path == "-")
    return usage("bad-notebook", "--cells does not read standard input",
                 "save the notebook: sbx run --cells FILE.ipynb");
  auto opened = sys::open_to_read(path);
  if (!opened) {
    if (opened.error().hint.empty()) opened.error().hint = kTakes;
    return fail(std::move(opened).error());
  }
  UniqueFd file = std::move(*opened);
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return usage("bad-notebook",
                 fmt::format("\"{}\" is {}", printable(path),
                             S_ISDIR(facts.st_mode) ? "a directory" : "not a regular file"),
                 kTakes);
  if (static_cast<std::uint64_t>(facts.st_size) > kLargest)
    return usage("bad-notebook",
                 fmt::format("\"{}\" has {}, and a notebook may have {}", printable(path),
                             describe(Bytes{static_cast<std::uint64_t>(facts.st_size)}),
                             describe(Bytes{kLargest})),
                 "without its outputs: jupyter nbconvert --clear-output --to notebook FILE");
  return file;
}

}  // namespace

Result<Notebook> read_notebook(const std::string& path) {
  const UniqueFd file = SBX_TRY(open_source(path));
  const session::Driver* const driver = session::driver_of_script(path);
  const std::string extension = path.substr(path.rfind('.') + 1);  // all where there is no point
  const plan::Language* const other = plan::language_of_extension(extension);
  if (driver == nullptr && other != nullptr && extension.size() < path.size())
    return usage(
        "bad-notebook",
        fmt::format("\"{}\" is {}, and no interpreter keeps its state between cells in that "
                    "language",
                    printable(path), other->name),
        fmt::format("cells run in {}; as a whole program: sbx run {}",
                    session::languages_of_cells(), shell_word(path)));
  if (driver == nullptr && !path.ends_with(".ipynb"))
    return usage("bad-notebook",
                 fmt::format("\"{}\" is neither .ipynb nor .py, .js, .R or .sh", printable(path)),
                 kTakes);
  const std::string text = SBX_TRY(sys::read_all(file.get(), kLargest));
  if (driver == nullptr) return parse_notebook(text, path);
  if (!is_utf8(text))
    return usage("bad-notebook", fmt::format("\"{}\" is not UTF-8", printable(path)),
                 "convert it: iconv -t utf-8 FILE");
  Notebook notebook = cells_of_script(text, comment_of(driver->language));
  notebook.language = driver->language;
  return notebook;
}

Result<NotebookTarget> NotebookTarget::prepare(const std::string& directory,
                                               const std::string& source) {
  NotebookTarget target;
  target.directory_ = SBX_TRY(workspace::prepare_target(directory));
  std::string name = source.substr(source.rfind('/') + 1);
  if (!name.ends_with(".ipynb")) name = name.substr(0, name.rfind('.')) + ".ipynb";
  target.name_ = std::move(name);
  target.shown_ = directory + (directory.ends_with('/') ? "" : "/") + target.name_;
  struct stat own{};
  struct stat there{};
  if (::stat(source.c_str(), &own) == 0 &&
      ::fstatat(target.directory_.get(), target.name_.c_str(), &there, 0) == 0 &&
      own.st_dev == there.st_dev && own.st_ino == there.st_ino)
    return usage("own-notebook",
                 fmt::format("--out would replace the notebook \"{}\" itself", printable(source)),
                 "name another directory");
  return target;
}

Status NotebookTarget::write(const std::string& text) const {
  const std::string temporary = fmt::format(".sbx-notebook-{}", ::getpid());
  (void)held::remove_file(directory_.get(), temporary);  // left by a killed sbx
  const UniqueFd file(::openat(directory_.get(), temporary.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.valid()) return failed(errno);
  Status written = sys::write_all(file.get(), text);
  if (!written) written = failed(written.error().errno_value);
  if (written && !held::rename({directory_.get(), temporary}, {directory_.get(), name_}))
    written = failed(errno);
  if (!written) (void)held::remove_file(directory_.get(), temporary);
  return written;
}

Status NotebookTarget::failed(int errno_value) const {
  return fail_errno(ErrorKind::host, "cannot-write",
                    fmt::format("cannot write \"{}\"", printable(shown_)), errno_value);
}

}  // namespace sbx::cli
