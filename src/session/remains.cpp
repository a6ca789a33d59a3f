#include "session/remains.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/held.hpp"
#include "base/json.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/kept.hpp"
#include "host/state.hpp"
#include "run/session_directory.hpp"
#include "session/session_name.hpp"
#include "workspace/tree.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 10;

/// No session has a name that begins with a dot.
std::string hidden_file(const std::string& name) {
  return "." + name;
}

std::string moment(std::int64_t seconds) {
  const time_t time = seconds;
  tm local{};
  if (::localtime_r(&time, &local) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min);
}

std::optional<Remains> read_remains(int directory, const std::string& name) {
  const auto file = sys::open_at(directory, hidden_file(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const auto text = file ? sys::read_all(file->get(), kLargest) : std::unexpected(file.error());
  if (!text) return std::nullopt;
  auto remains = read_fields<Remains>(Json::parse(*text, nullptr, false));
  return remains ? std::optional(std::move(*remains)) : std::nullopt;
}

}  // namespace

void leave_remains(int directory, const std::string& name, const Remains& remains) {
  drop_remains(directory, name);
  const UniqueFd file(::openat(directory, hidden_file(name).c_str(),
                               O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.valid() && !sys::write_all(file.get(), dump(write_fields(remains))))
    drop_remains(directory, name);
}

void drop_remains(int directory, const std::string& name) {
  (void)held::remove_file(directory, hidden_file(name));
}

void sweep_remains(int directory) {
  constexpr time_t kKept = 7 * 24 * 60 * 60;
  const time_t now = ::time(nullptr);
  const auto names = workspace::read_names(directory);
  if (!names) return;
  for (const std::string& each : *names) {
    struct stat facts{};
    if (each.starts_with('.') && check_name(each.substr(1)) &&
        ::fstatat(directory, each.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(facts.st_mode) && now - facts.st_mtime > kKept)
      (void)held::remove_file(directory, each);
  }
}

std::optional<Remains> remains_of(const host::Host& host, const std::string& name) {
  std::optional<Remains> last;
  if (!check_name(name)) return last;
  for (const run::SessionDirectory& each : run::session_directories(host))
    if (auto found = read_remains(each.open.get(), name);
        found && (!last || found->ended > last->ended))
      last = std::move(found);
  if (!last || last->set.empty()) return last;
  const auto store = changes::Store::open(host::state_directory(host));
  if (store && !store->has(last->set)) last->kept = 0;  // somebody has dropped it
  return last;
}

void forget_remains(const host::Host& host, const std::string& name) {
  for (const run::SessionDirectory& each : run::session_directories(host))
    drop_remains(each.open.get(), name);
}

std::string ended_words(const std::string& name, const Remains& remains) {
  return fmt::format("the session \"{}\" ended at {}, {}", printable(name), moment(remains.ended),
                     printable(remains.cause));
}

std::string remains_words(const Remains& remains) {
  std::string text;
  if (remains.kept > 0)
    text = fmt::format("its {} {} kept: sbx changes diff {}, sbx changes apply {}",
                       remains.kept == 1 ? "change" : fmt::format("{} changes", remains.kept),
                       remains.kept == 1 ? "is" : "are", printable(remains.set),
                       printable(remains.set));
  if (remains.lost == 0) return text.empty() ? printable(remains.cure) : text;
  std::string names;
  for (const std::string& each : remains.paths)
    names += (names.empty() ? "" : ", ") + printable(each);
  return text + fmt::format("{}{} gone with it: {}{}{}{}", text.empty() ? "" : "; ",
                            remains.lost == 1 ? "a file is" : "files are", names,
                            remains.lost > remains.paths.size() ? ", ..." : "",
                            remains.cure.empty() ? "" : "; ", printable(remains.cure));
}

}  // namespace sbx::session
