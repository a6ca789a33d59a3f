#include "workspace/state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

std::unexpected<Error> unusable(const std::string& path, const std::string& why, int errno_value) {
  return fail(Error{.kind = ErrorKind::host,
                    .code = "no-state-directory",
                    .message = "cannot use '" + path + "'" + (why.empty() ? "" : ": " + why),
                    .errno_value = errno_value,
                    .hint = "sbx keeps its state there: HOME, and XDG_STATE_HOME below it, say "
                            "where"});
}

/// Opens a directory that sbx made. A link is refused.
Result<UniqueFd> open_own(int holder, const std::string& name, const std::string& shown,
                          Missing missing) {
  if (missing == Missing::is_made && !held::make_directory(holder, name, 0700) && errno != EEXIST)
    return unusable(shown, {}, errno);
  UniqueFd directory(
      ::openat(holder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  if (!directory.valid() || ::fstat(directory.get(), &facts) != 0)
    return unusable(shown, {}, errno);
  if (facts.st_uid != ::geteuid()) return unusable(shown, "it belongs to somebody else", 0);
  if ((facts.st_mode & 077) != 0 && !held::set_mode(directory.get(), 0700))
    return unusable(shown, "it is open to others", errno);
  return directory;
}

}  // namespace

Result<UniqueFd> open_state(const std::string& state_directory, Missing missing) {
  if (state_directory.empty()) return unusable("~/.local/state/sbx", "the caller has no home", 0);
  const std::string above = directory_of(state_directory);
  // The caller decides about the directories above those of sbx: they may be links.
  const auto holder = missing == Missing::is_made
                          ? held::open_or_make_path(above, 0700)
                          : sys::open_at(AT_FDCWD, above, O_PATH | O_DIRECTORY);
  if (!holder) return unusable(above, {}, holder.error().errno_value);
  return open_own(holder->get(), name_of(state_directory), state_directory, missing);
}

Status make_state_reserved(const std::string& state_directory) {
  auto made = open_state(state_directory, Missing::is_made);
  if (made) return {};
  const int error = made.error().errno_value;
  if (error == EROFS || error == EACCES) return {};  // nor can the program
  return fail(std::move(made).error());
}

Result<UniqueFd> open_state(const std::string& state_directory, const std::string& part,
                            Missing missing) {
  const UniqueFd own = SBX_TRY(open_state(state_directory, missing));
  return open_own(own.get(), part, state_directory + "/" + part, missing);
}

}  // namespace sbx::workspace
