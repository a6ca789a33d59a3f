#include "workspace/duplicate.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <ranges>
#include <utility>

#include "base/held.hpp"
#include "base/private_disk.hpp"
#include "base/sys.hpp"
#include "plan/files/disk.hpp"
#include "workspace/made_for.hpp"
#include "workspace/put.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

std::unexpected<Error> not_copied(const std::string& source) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return fail(Error{.kind = ErrorKind::setup,
                    .code = full ? "workspace-too-large" : "cannot-copy",
                    .message = "cannot copy '" + source + "' for the run",
                    .errno_value = error,
                    .hint = full ? "raise limits.disk and limits.disk_files" : ""});
}

std::unexpected<Error> cancelled(const std::string& source) {
  errno = ECANCELED;
  return not_copied(source);
}

/// User attributes only: the others are the host's. False: some were not taken, as by a tmpfs
/// before Linux 6.6.
bool copy_attributes(int from, int to) {
  bool all = true;
  char names[4096];
  const ssize_t size = ::flistxattr(from, names, sizeof names);
  for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(std::strlen(names + at)) + 1) {
    if (std::strncmp(names + at, "user.", 5) != 0 ||
        std::strncmp(names + at, "user.overlay.", 13) == 0)
      continue;
    char value[4096];
    const ssize_t length = ::fgetxattr(from, names + at, value, sizeof value);
    // A file system without room for it keeps the file all the same.
    all &=
        length >= 0 && ::fsetxattr(to, names + at, value, static_cast<std::size_t>(length), 0) == 0;
  }
  return all;
}

class Filling {
 public:
  Filling(const std::string& path, UniqueFd source, UniqueFd veil, UniqueFd target, uid_t uid,
          gid_t gid, CopiedTree& tree, std::vector<Left>& left, const Copied& copied,
          const std::function<bool()>& is_cancelled)
      : path_(path),
        source_(std::move(source)),
        veil_(std::move(veil)),
        target_(std::move(target)),
        uid_(uid),
        gid_(gid),
        tree_(tree),
        left_(left),
        copied_(copied),
        is_cancelled_(is_cancelled) {}

  Status run() {
    waiting_.emplace_back(".");
    while (!waiting_.empty()) {
      const std::string directory = std::move(waiting_.back());
      waiting_.pop_back();
      SBX_TRY(copy_directory(directory));
    }
    const MadeFor made(uid_, gid_);
    // Last, children first: a closed directory can't be filled, and filling moves its times.
    for (const Directory& each : directories_ | std::views::reverse) {
      const auto directory = open_private_directory(target_.get(), each.path);
      if (!directory) continue;
      const timespec times[2] = {each.facts.st_atim, each.facts.st_mtim};
      if (!held::set_times(directory->get(), times) ||
          !held::set_mode(directory->get(), each.facts.st_mode & 01777))
        return not_copied(path_ + "/" + each.path);
    }
    return {};
  }

 private:
  struct Directory {
    std::string path;
    struct stat facts{};
  };

  void leave(const std::string& path, const char* why) { left_.push_back({path, why, true}); }

  Status copy_directory(const std::string& path) {
    const auto from = open_directory(source_.get(), path);
    if (!from) {
      // A mount has a copy of its own; what the caller can't read, the sandbox can't either.
      if (from.error().errno_value == EACCES) leave(path, "can't be read");
      return {};
    }
    struct stat facts{};
    if (::fstat(from->get(), &facts) != 0) return not_copied(path_ + "/" + path);
    directories_.push_back({path, facts});
    const auto entries = read_directory(from->get());
    if (!entries) {
      leave(path, "can't be read");
      return {};
    }
    const UniqueFd to = SBX_TRY(open_target(path));
    for (const Entry& entry : *entries) SBX_TRY(copy_one(path, to.get(), entry));
    return {};
  }

  Result<UniqueFd> open_target(const std::string& path) {
    const MadeFor made(uid_, gid_);
    return open_directory(target_.get(), path);
  }

  /// How the veil shows a name: hidden, as other content, or not at all.
  enum class Veiled { no, hidden, content };
  Veiled veiled(const std::string& path) const {
    struct stat facts{};
    if (!veil_.valid() || ::fstatat(veil_.get(), path.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
      return Veiled::no;
    if (hides_its_name(facts)) return Veiled::hidden;
    return S_ISREG(facts.st_mode) ? Veiled::content : Veiled::no;
  }

  Status copy_one(const std::string& directory, int to, const Entry& entry) {
    const std::string path = join(directory, entry.name);
    if (is_cancelled_ && is_cancelled_()) return cancelled(path_);
    const Veiled veil = veiled(path);
    if (veil == Veiled::hidden) return {};
    switch (entry.facts.st_mode & S_IFMT) {
      case S_IFDIR: {
        const MadeFor made(uid_, gid_);
        if (!held::make_directory(to, entry.name, 0700) && errno != EEXIST)
          return not_copied(path_ + "/" + path);
        waiting_.push_back(path);
        note(directory, to, entry);
        return {};
      }
      case S_IFREG:
        return copy_file(directory, veil == Veiled::content ? veil_.get() : source_.get(), to,
                         entry);
      case S_IFLNK: {
        const auto text = read_link(source_.get(), path);
        if (!text) return {};  // gone meanwhile
        const MadeFor made(uid_, gid_);
        if (!held::make_symlink(*text, to, entry.name) && errno != EEXIST)
          return not_copied(path_ + "/" + path);
        const timespec times[2] = {entry.facts.st_atim, entry.facts.st_mtim};
        if (const auto link = held::open_name(to, entry.name, O_PATH))
          (void)held::set_times(link->get(), times);  // no program depends on a link's times
        note(directory, to, entry);
        return {};
      }
      case S_IFIFO: {
        const MadeFor made(uid_, gid_);
        if (!held::make_fifo(to, entry.name, entry.facts.st_mode & 0777) && errno != EEXIST)
          return not_copied(path_ + "/" + path);
        note(directory, to, entry);
        return {};
      }
      default:
        return {};  // sockets and devices are the host's
    }
  }

  /// What has this name in the copy now was on the host when the copy was made. `veil`: the content
  /// that was put in its place.
  void note(const std::string& directory, int to, const Entry& entry,
            const struct stat* veil = nullptr) {
    struct stat host = entry.facts;
    if (veil != nullptr) host.st_size = veil->st_size;
    struct stat copy{};
    if (::fstatat(to, entry.name.c_str(), &copy, AT_SYMLINK_NOFOLLOW) == 0)
      tree_.add(directory, {entry.name, host, copy.st_ino, veil != nullptr});
  }

  Status copy_file(const std::string& directory, int root, int to, const Entry& entry) {
    const std::string path = join(directory, entry.name);
    const auto from = open_file(root, path);
    if (!from) {
      if (from.error().errno_value == EACCES) leave(path, "can't be read");
      return {};
    }
    struct stat facts{};
    if (::fstat(from->get(), &facts) != 0) return not_copied(path_ + "/" + path);
    const struct stat* const veil = root != source_.get() ? &facts : nullptr;
    const bool has_more_names = veil == nullptr && facts.st_nlink > 1;
    const MadeFor made(uid_, gid_);
    if (has_more_names && add_name(held::identity_of(facts), to, entry.name)) {
      note(directory, to, entry);
      return {};
    }
    const UniqueFd copy(::openat(to, entry.name.c_str(),
                                 O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!copy.valid() && errno == EEXIST) {  // something is mounted there
      note(directory, to, entry, veil);
      return {};
    }
    if (!copy.valid()) return not_copied(path_ + "/" + path);
    if (auto done = copy_content(from->get(), copy.get(), copied_, is_cancelled_); !done) {
      errno = done.error().errno_value;
      return not_copied(path_ + "/" + path);
    }
    if (!copy_attributes(from->get(), copy.get()) && !std::exchange(lost_attributes_, true))
      leave(path, "its user.* attributes, and maybe those of other files, can't be kept here");
    const timespec times[2] = {entry.facts.st_atim, entry.facts.st_mtim};
    if (!held::set_times(copy.get(), times) ||
        !held::set_mode(copy.get(), entry.facts.st_mode & 07777))
      return not_copied(path_ + "/" + path);
    if (has_more_names) linked_.emplace(std::pair(facts.st_dev, facts.st_ino), path);
    note(directory, to, entry, veil);
    return {};
  }

  /// Names of one file stay so. False: it is the first of them.
  bool add_name(held::Identity file, int to, const std::string& name) {
    const auto known = linked_.find({file.device, file.inode});
    if (known == linked_.end()) return false;
    const auto first = held::open_beneath(target_.get(), known->second, O_PATH);
    return first && held::link_file(first->get(), to, name);
  }

  const std::string& path_;  ///< of the source, for messages
  UniqueFd source_;
  UniqueFd veil_;
  UniqueFd target_;
  uid_t uid_;
  gid_t gid_;
  CopiedTree& tree_;
  std::vector<Left>& left_;
  const Copied& copied_;
  const std::function<bool()>& is_cancelled_;
  bool lost_attributes_ = false;                           ///< reported once
  std::map<std::pair<dev_t, ino_t>, std::string> linked_;  ///< first names of files with several
  std::vector<std::string> waiting_;
  std::vector<Directory> directories_;
};

}  // namespace

Status fill_copies(const plan::Plan& plan, int scratch, uid_t uid, gid_t gid, CopiedTrees& trees,
                   std::vector<Left>& left, const Copied& copied,
                   const std::function<bool()>& is_cancelled) {
  const CopyingEnds ends(copied);
  for (const plan::Mount& mount : plan.mounts) {
    const auto* copy = mount.as<plan::mount::Copy>();
    if (copy == nullptr) continue;
    const std::string place = plan::place_on_disk(*copy);
    UniqueFd source = SBX_TRY(open_lower(copy->source));
    UniqueFd target;
    UniqueFd veil;
    {
      const MadeFor made(uid, gid);
      target = SBX_TRY(open_directory(scratch, place + private_disk::kUpper));
      if (!copy->veils.empty())
        veil = SBX_TRY(open_directory(scratch, place + private_disk::kVeil));
    }
    struct stat root{};
    if (::fstat(source.get(), &root) != 0) return not_copied(copy->source.path);
    const auto tree = std::make_shared<CopiedTree>(root);
    SBX_TRY(Filling(copy->source.path, std::move(source), std::move(veil), std::move(target), uid,
                    gid, *tree, left, copied, is_cancelled)
                .run());
    trees.insert_or_assign(mount.target, tree);
    if (is_cancelled && is_cancelled()) return cancelled(copy->source.path);
  }
  return {};
}

}  // namespace sbx::workspace
