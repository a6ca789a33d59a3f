#include "workspace/new_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/held.hpp"
#include "base/random.hpp"
#include "base/sys.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/protected.hpp"

namespace sbx::workspace {
namespace {

struct Found {
  std::string directory;  ///< that holds it, below the live directory
  std::string name;
  std::string_view why;
};

/// git writes X.lock and renames it to X: an entry of a moment, which nothing reads.
bool is_lock_of_git(std::string_view directory, std::string_view name) {
  return name.ends_with(".lock") &&
         plan::is_repository(plan::parent_of(std::string(directory)), plan::base_name(directory));
}

std::vector<Found> find(const plan::LiveDirectory& live, const host::Files& files) {
  std::vector<Found> found;
  const host::Visit visit = [&](const host::Seen& seen) {
    if (seen.is_mount) return host::Walk::past;  // the host's own
    const std::string above = seen.directory.empty()
                                  ? live.source
                                  : plan::joined(live.source, std::string(seen.directory));
    const std::string_view why =
        plan::reason_to_guard(above, seen.name, seen.facts.type == host::FileType::directory);
    if (why.empty() || seen.name.ends_with(kRefusedEnd) || is_lock_of_git(above, seen.name))
      return host::Walk::into;
    Found each{std::string(seen.directory), std::string(seen.name), why};
    const std::string path = each.directory.empty() ? each.name : each.directory + "/" + each.name;
    if (!std::ranges::binary_search(live.guarded, path)) found.push_back(std::move(each));
    return host::Walk::past;
  };
  // What can't be listed now is looked through the next time.
  (void)files.walk(live.source, visit, [](const std::string& /*directory*/) {});
  return found;
}

/// The first name is the plain one. Whoever takes that beforehand can't guess the next; the last
/// leaves out a name that is too long for an end.
std::vector<std::string> free_names(const std::string& name) {
  const std::string end(kRefusedEnd);
  return {name + end, name + "." + random_hex() + end, random_hex() + end};
}

/// The name that it has now; empty with errno. Names, not files, are renamed: a program that puts
/// another file in its place has that one renamed.
std::string rename(int directory, const std::string& name) {
  for (std::string& now : free_names(name)) {
    if (held::rename_to_free({directory, name}, {directory, now})) return std::move(now);
    // This file system can't tell whether a name is free. Nobody has one that was not known.
    const bool is_secret = now != name + std::string(kRefusedEnd);
    if (errno == EINVAL && is_secret && held::rename({directory, name}, {directory, now}))
      return std::move(now);
    if (errno != EEXIST && errno != EINVAL && errno != ENAMETOOLONG) return {};
  }
  return {};
}

/// A program may close its directory to writers, and sbx may be no more than its owner.
std::string rename_in_closed(int directory, const std::string& name) {
  struct stat facts{};
  const bool is_known = ::fstat(directory, &facts) == 0;
  const mode_t mode = facts.st_mode & 07777U;
  if (!is_known || !held::set_mode(directory, mode | S_IRWXU)) {
    errno = EACCES;
    return {};
  }
  std::string now = rename(directory, name);
  const int error = errno;
  (void)held::set_mode(directory, mode);
  errno = error;
  return now;
}

/// The directory is reached from the held one without a link and held itself.
NewName put_one_aside(int root, const Found& found) {
  NewName done{.path = found.directory.empty() ? found.name : found.directory + "/" + found.name,
               .why = found.why};
  const auto directory = held::open_beneath(root, found.directory.empty() ? "." : found.directory,
                                            O_PATH | O_DIRECTORY);
  if (!directory) {
    done.error = directory.error().errno_value;
    return done;
  }
  done.now = rename(directory->get(), found.name);
  if (done.now.empty() && errno == EACCES)
    done.now = rename_in_closed(directory->get(), found.name);
  if (done.now.empty()) done.error = errno;
  return done;
}

/// Another one has its place, or none: it is as if it had never been seen.
bool was_gone(const NewName& name) {
  return name.error == ENOENT || name.error == ENOTDIR || name.error == ELOOP;
}

}  // namespace

Result<NewNames> NewNames::of(const plan::Plan& plan) {
  NewNames names;
  for (const plan::LiveDirectory& each : plan.live)
    names.roots_.push_back(
        {each, SBX_TRY(sys::open_at(AT_FDCWD, each.source, O_PATH | O_DIRECTORY))});
  return names;
}

std::vector<NewName> NewNames::put_aside(const host::Files& files) const {
  std::vector<NewName> all;
  for (const Root& root : roots_)
    for (const Found& each : find(root.directory, files)) {
      NewName done = put_one_aside(root.held.get(), each);
      if (!was_gone(done)) all.push_back(std::move(done));
    }
  return all;
}

}  // namespace sbx::workspace
