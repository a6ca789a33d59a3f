#include "cli/repl/history.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/held.hpp"
#include "base/json.hpp"
#include "base/sys.hpp"
#include "run/session_directory.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kLongestKept = std::size_t{64} << 10;
constexpr off_t kMostBytes = off_t{8} << 20;  ///< that are read of the end of the file
/// More than are kept: the file is not written anew for each.
constexpr std::size_t kMostInFile = History::kMost + History::kMost / 10;

std::unexpected<Error> failed() {
  return fail_errno(ErrorKind::host, "cannot-write", "cannot keep the history of cells");
}

std::string line_of(const std::string& cell) {
  return Json(cell).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<History> History::open(const host::Host& host, const std::string& language) {
  History history(SBX_TRY(run::open_history_directory(host)), language);
  SBX_TRY(history.load());
  return history;
}

Status History::load() {
  const UniqueFd file(::openat(directory_.get(), file_.c_str(),
                               O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat facts{};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return failed();
  const bool is_long = facts.st_size > kMostBytes;
  if (is_long) (void)::lseek(file.get(), -kMostBytes, SEEK_END);
  const std::string text =
      SBX_TRY(sys::read_all(file.get(), static_cast<std::size_t>(kMostBytes) * 2));
  std::string_view rest = text;
  if (is_long) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const Json cell = Json::parse(rest.substr(0, end), nullptr, false);
    if (cell.is_string()) cells_.push_back(cell.get<std::string>());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const bool is_full = is_long || cells_.size() > kMostInFile;
  if (cells_.size() > kMost)
    cells_.erase(cells_.begin(), cells_.end() - static_cast<std::ptrdiff_t>(kMost));
  if (is_full) shorten();
  return {};
}

/// What another prompt adds meanwhile may be lost; a prompt that shortens it too waits for the next
/// time.
void History::shorten() const {
  const std::string made = file_ + ".new";
  if (::flock(directory_.get(), LOCK_EX | LOCK_NB) != 0) return;
  (void)held::remove_file(directory_.get(), made);
  const UniqueFd file(
      ::openat(directory_.get(), made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  std::string text;
  for (const std::string& cell : cells_) text += line_of(cell);
  if (file.valid() && sys::write_all(file.get(), text))
    (void)held::rename({directory_.get(), made}, {directory_.get(), file_});
  (void)::flock(directory_.get(), LOCK_UN);
}

Status History::add(const std::string& cell) {
  if (cell.size() > kLongestKept || (!cells_.empty() && cells_.back() == cell)) return {};
  cells_.push_back(cell);
  const UniqueFd file(::openat(directory_.get(), file_.c_str(),
                               O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return failed();
  return sys::write_all(file.get(), line_of(cell));
}

}  // namespace sbx::cli
