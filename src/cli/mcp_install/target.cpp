#include "cli/mcp_install/target.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/mcp_install/held_walk.hpp"
#include "cli/mcp_install/not_editable.hpp"

namespace sbx::cli::mcp_install {
namespace {

constexpr std::size_t kLargest = std::size_t{16} << 20;
constexpr mode_t kPrivate = 0600;  // such files may hold keys
constexpr mode_t kPrivateDirectory = 0700;

}  // namespace

Result<Target> Target::open(const std::string& root, const std::string& below) {
  Place place = SBX_TRY(walk(root, below));
  Target target;
  target.path_ = root + "/" + below;
  target.directory_ = std::move(place.directory);
  target.missing_ = std::move(place.missing);
  target.name_ = std::move(place.name);
  if (target.missing_.empty()) SBX_TRY(target.read());
  return target;
}

Status Target::read() {
  const auto open = held::open_name(directory_.get(), name_, O_RDONLY);
  if (!open && open.error().errno_value == ENOENT) return {};
  if (!open) return fail(open.error());
  struct stat facts{};
  if (::fstat(open->get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return not_editable("it is not a regular file");
  if (static_cast<std::size_t>(facts.st_size) > kLargest)
    return not_editable("it has more than 16 MiB");
  text_ = SBX_TRY(sys::read_all(open->get(), kLargest));
  facts_ = facts;
  return {};
}

Status Target::make_directories() {
  for (const std::string& each : missing_) {
    auto made = held::make_and_open(directory_.get(), each, kPrivateDirectory);
    // The client's other file may lie in it too, and was written first.
    if (!made && made.error().errno_value == EEXIST)
      made = held::open_name(directory_.get(), each, O_PATH | O_DIRECTORY);
    if (!made) return fail(made.error());
    directory_ = std::move(*made);
  }
  missing_.clear();
  return {};
}

/// The client may have written meanwhile, or another sbx.
bool Target::is_as_read() const {
  struct stat now{};
  if (::fstatat(directory_.get(), name_.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT && !exists();
  return held::identity_of(now) == held::identity_of(facts_) && now.st_size == facts_.st_size &&
         now.st_mtim.tv_sec == facts_.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == facts_.st_mtim.tv_nsec;
}

Status Target::write(const std::string& temporary, const std::string& text) const {
  const UniqueFd file = SBX_TRY(sys::open_at(directory_.get(), temporary,
                                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kPrivate));
  SBX_TRY(sys::write_all(file.get(), text));
  if (!exists()) return {};
  const bool is_other = facts_.st_uid != ::geteuid() || facts_.st_gid != ::getegid();
  if ((is_other && !held::set_owner(file.get(), facts_.st_uid, facts_.st_gid)) ||
      !held::set_mode(file.get(), facts_.st_mode & 07777U))
    return fail_errno(ErrorKind::host, "cannot-write",
                      "cannot give the new file the owner and mode of the old one");
  return {};
}

Status Target::replace(const std::string& text) {
  SBX_TRY(make_directories());
  const std::string temporary = ".sbx-settings-" + std::to_string(::getpid());
  (void)held::remove_file(directory_.get(), temporary);  // left by a killed sbx
  Status written = write(temporary, text);
  if (written && !is_as_read())
    written = not_editable("'" + printable(path_) + "' has changed while it was being edited",
                           "once more, and not while the client runs");
  const held::Name from{directory_.get(), temporary};
  const held::Name to{directory_.get(), name_};
  if (written && !(exists() ? held::rename(from, to) : held::rename_to_free(from, to)))
    written =
        fail_errno(ErrorKind::host, "cannot-write", "cannot write '" + printable(path_) + "'");
  if (!written) (void)held::remove_file(directory_.get(), temporary);
  return written;
}

}  // namespace sbx::cli::mcp_install
