#include "run/session_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/held.hpp"
#include "host/state.hpp"
#include "workspace/state.hpp"

namespace sbx::run {

Result<UniqueFd> open_session_directory(const host::Host& host, IfMissing missing) {
  auto directory =
      workspace::open_state(host::runtime_directory(host), "sessions",
                            missing == IfMissing::is_made ? workspace::Missing::is_made
                                                          : workspace::Missing::is_an_error);
  if (!directory && directory.error().code == "no-state-directory")
    directory.error().hint =
        "sessions are kept there: XDG_RUNTIME_DIR can name another directory, of "
        "yours and of mode 0700";
  return directory;
}

std::vector<SessionDirectory> session_directories(const host::Host& host) {
  std::vector<SessionDirectory> directories;
  std::vector<struct stat> known;
  for (const std::string& path : host::session_directories(host)) {
    auto open = workspace::open_state(path, "sessions", workspace::Missing::is_an_error);
    struct stat facts{};
    if (!open || ::fstat(open->get(), &facts) != 0) continue;
    // Two names of one directory, by a link above it.
    if (std::ranges::any_of(known, [&](const struct stat& each) {
          return each.st_dev == facts.st_dev && each.st_ino == facts.st_ino;
        }))
      continue;
    known.push_back(facts);
    directories.push_back({.path = path + "/sessions", .open = std::move(*open)});
  }
  return directories;
}

void note_session_directory(const host::Host& host) {
  const std::string used = host::runtime_directory(host);
  const std::string state_path = host::state_directory(host);
  if (used == state_path) return;
  const auto state = workspace::open_state(state_path, workspace::Missing::is_made);
  if (!state) return;
  const auto known = host.files->link_target(state_path + "/" + host::kRuntimeLink);
  if (known && *known == used) return;
  const std::string made = std::string(".") + host::kRuntimeLink + "-" + std::to_string(::getpid());
  (void)held::remove_file(state->get(), made);
  if (!held::make_symlink(used, state->get(), made)) return;
  if (!held::rename({state->get(), made}, {state->get(), host::kRuntimeLink}))
    (void)held::remove_file(state->get(), made);
}

Result<UniqueFd> open_history_directory(const host::Host& host) {
  return workspace::open_state(host::state_directory(host), "history", workspace::Missing::is_made);
}

}  // namespace sbx::run
