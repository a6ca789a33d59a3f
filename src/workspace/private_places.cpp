#include "workspace/private_places.hpp"

#include <fcntl.h>

#include <cerrno>
#include <set>
#include <string>

#include "base/held.hpp"
#include "base/private_disk.hpp"
#include "base/sys.hpp"
#include "plan/files/disk.hpp"
#include "plan/tier/landlock.hpp"
#include "workspace/made_for.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

std::unexpected<Error> not_made(const std::string& path, int error) {
  return fail_errno(ErrorKind::setup, "no-private-directory",
                    "cannot make '" + path + "' in the private directory", error);
}

/// Nobody else works in the directory before the program starts.
Status write_new(int root, const std::string& path, const std::string& content, mode_t mode) {
  const UniqueFd directory = SBX_TRY(make_directory(root, directory_of(path), std::nullopt));
  const UniqueFd file(::openat(directory.get(), name_of(path).c_str(),
                               O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return not_made(path, errno);
  SBX_TRY(sys::write_all(file.get(), content));
  if (!held::set_mode(file.get(), mode)) return not_made(path, errno);
  return {};
}

/// Beside a copy: what is left out of it. A FIFO stands for a name that is hidden.
Status make_veil(int root, const std::string& place, const plan::Veil& veil) {
  const std::string path = join(place, veil.path);
  switch (veil.kind) {
    case plan::VeilKind::directory:
      SBX_TRY(make_directory(root, path, std::nullopt));
      return {};
    case plan::VeilKind::content:
      return write_new(root, path, veil.content, 0600);
    case plan::VeilKind::hidden:
      break;
  }
  const UniqueFd directory = SBX_TRY(make_directory(root, directory_of(path), std::nullopt));
  if (!held::make_fifo(directory.get(), name_of(path), 0600)) return not_made(path, errno);
  return {};
}

Status make_copys_places(int root, const plan::mount::Copy& copy) {
  const std::string own = plan::place_on_disk(copy);
  SBX_TRY(make_directory(root, own + private_disk::kUpper, std::nullopt));
  if (copy.veils.empty()) return {};
  SBX_TRY(make_directory(root, own + private_disk::kVeil, std::nullopt));
  for (const plan::Veil& veil : copy.veils)
    SBX_TRY(make_veil(root, own + private_disk::kVeil, veil));
  return {};
}

Status make_place(const plan::Plan& plan, const plan::Mount& step, int root) {
  if (const auto* copy = step.as<plan::mount::Copy>()) return make_copys_places(root, *copy);
  const std::string path = plan::place_in_private(plan, step);
  if (path.empty()) return {};
  if (const auto* file = step.as<plan::mount::File>())
    return write_new(root, path, file->content, file->mode);
  if (const auto* link = step.as<plan::mount::Symlink>()) {
    const UniqueFd directory = SBX_TRY(make_directory(root, directory_of(path), std::nullopt));
    if (!held::make_symlink(link->text, directory.get(), name_of(path)))
      return not_made(path, errno);
    return {};
  }
  const bool is_directory =
      step.kind() == plan::MountKind::directory || step.kind() == plan::MountKind::scratch;
  const bool is_top = !path.contains('/');  // make_tops() has made it
  if (is_directory && !is_top) SBX_TRY(make_directory(root, path, std::nullopt));
  return {};
}

/// The directories that lie in the private directory itself, which is not the program's: nobody
/// else could replace one.
Status make_tops(const plan::Plan& plan, int root, uid_t uid, gid_t gid) {
  std::set<std::string> tops;
  for (const plan::Mount& step : plan.mounts)
    if (const std::string path = plan::place_in_private(plan, step); !path.empty())
      tops.insert(path.substr(0, path.find('/')));
  for (const std::string& name : tops) {
    if (!held::make_directory(root, name, 0755)) return not_made(name, errno);
    if (uid == ::geteuid()) continue;
    const UniqueFd made = SBX_TRY(held::open_name(root, name, O_PATH | O_DIRECTORY));
    if (!held::set_owner(made.get(), uid, gid)) return not_made(name, errno);
  }
  return {};
}

}  // namespace

Status make_private_places(const plan::Plan& plan, int root, uid_t uid, gid_t gid) {
  SBX_TRY(make_tops(plan, root, uid, gid));
  const MadeFor made(uid, gid);
  for (const plan::Mount& step : plan.mounts) SBX_TRY(make_place(plan, step, root));
  return {};
}

}  // namespace sbx::workspace
