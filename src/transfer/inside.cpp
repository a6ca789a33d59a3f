#include "transfer/inside.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/held.hpp"
#include "base/result.hpp"
#include "base/sys.hpp"
#include "transfer/archive.hpp"
#include "transfer/pack.hpp"
#include "transfer/unpack.hpp"
#include "workspace/disk.hpp"
#include "workspace/tree.hpp"

namespace sbx::transfer {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr std::size_t kMostTold = 10'000;  // of what was refused, and of what was written

std::string expanded(std::string_view path) {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  if (home != nullptr && (path == "~" || path.starts_with("~/")))
    return home + std::string(path.substr(1));
  return std::string(path);
}

Frame fault(const std::string& path, Reason reason, int errno_value) {
  return {.kind = FrameKind::fault,
          .reason = reason,
          .number = static_cast<std::uint32_t>(errno_value),
          .name = path.substr(0, kLongestName)};
}

Frame written_as(const std::string& path, const Brought& what) {
  return {.kind = FrameKind::written,
          .type = what.type,
          .number = what.replaced ? 1U : 0U,
          .size = what.bytes,
          .name = path.substr(0, kLongestName)};
}

/// Where an archive goes: a directory, and another name for the one thing that comes.
struct Target {
  UniqueFd root;
  std::string name;  ///< empty: its own
};

/// Makes each directory of a path that is missing; here links may be followed, they are the
/// sandbox's own.
Result<UniqueFd> make_directories(const std::string& path) {
  const UniqueFd directory = SBX_TRY(held::open_or_make_path(path, 0755));
  return held::open_again(directory.get(), O_RDONLY | O_DIRECTORY);
}

Result<Target> open_target(const std::string& path) {
  struct stat facts{};
  const bool is_directory = ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
  if (is_directory || path.ends_with('/') || root_name(path).empty())
    return Target{.root = SBX_TRY(make_directories(path)), .name = {}};
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : path.substr(0, slash);
  return Target{.root = SBX_TRY(make_directories(directory)), .name = root_name(path)};
}

/// Gives what arrives the name that was asked for.
class Renaming {
 public:
  explicit Renaming(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string operator()(const std::string& path) const {
    if (name_.empty()) return path;
    const auto slash = path.find('/');
    return slash == std::string::npos ? name_ : name_ + path.substr(slash);
  }

 private:
  std::string name_;
};

/// The path of what arrives, as its target was typed.
std::string path_at(const std::string& target, const std::string& own_name,
                    const std::string& name) {
  if (!own_name.empty()) return target + name.substr(own_name.size());
  if (target == "." || target == "./") return name;
  return target + (target.ends_with('/') ? "" : "/") + name;
}

/// What keeps a stream from becoming a file at `path`: it names a directory, or a file that the
/// program may not write. 0: nothing.
int against_file(const std::string& path) {
  struct stat facts{};
  if (path.ends_with('/') || root_name(path).empty()) return EISDIR;
  if (::stat(path.c_str(), &facts) != 0) return 0;
  if (S_ISDIR(facts.st_mode)) return EISDIR;
  return S_ISREG(facts.st_mode) && ::access(path.c_str(), W_OK) != 0 ? errno : 0;
}

enum class What : unsigned char { tree, one_file };

int put(const std::string& path, What what) {
  // Files are made with their modes: a filter may refuse fchmod(2).
  (void)::umask(0);
  Writer writer(STDOUT_FILENO);
  const auto report = [&](const Status& said) { return said && writer.flush() ? kDone : kFailed; };
  const int against = what == What::one_file ? against_file(expanded(path)) : 0;
  const auto target = against == 0 ? open_target(expanded(path))
                                   : Result<Target>(fail_errno(ErrorKind::host, "", "", against));
  if (!target) {
    (void)report(writer.put(fault(path, Reason::cannot_write, target.error().errno_value)));
    (void)report(writer.put({.kind = FrameKind::end}));
    return kFailed;
  }
  // Said at the end: the host reads nothing as long as it writes.
  std::vector<Frame> refused;
  std::vector<Frame> written;
  Reader reader(STDIN_FILENO);
  const int root = target->root.get();
  Unpacker unpacker(
      reader, {.trust = Trust::archive,
               .open_directory =
                   [root](const std::string& directory) { return open_directory(root, directory); },
               .name_of = Renaming(target->name),
               .refused =
                   [&](const std::string& name, int errno_value) {
                     if (refused.size() < kMostTold)
                       refused.push_back(fault(path_at(path, target->name, name),
                                               Reason::cannot_write, errno_value));
                   },
               .wrote =
                   [&](const Brought& each) {
                     if (written.size() < kMostTold)
                       written.push_back(written_as(path_at(path, target->name, each.path), each));
                   }});
  const Unpacked done = unpacker.run();
  for (const auto* told : {&refused, &written})
    for (const Frame& each : *told)
      if (!writer.put(each)) return kFailed;
  if (done.broken && !writer.put(fault(path, Reason::cut, 0))) return kFailed;
  const Frame end{.kind = FrameKind::end,
                  .number = static_cast<std::uint32_t>(done.sum.files),
                  .size = done.sum.bytes};
  return report(writer.put(end)) == kDone && !done.has_failures ? kDone : kFailed;
}

bool is_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

int get(std::uint64_t max_bytes, std::uint64_t max_depth, const char* place,
        std::span<const char* const> paths) {
  Writer writer(STDOUT_FILENO);
  Packing how{.max_file_bytes = max_bytes, .max_depth = max_depth};
  if (::stat(place, &how.target) != 0) how.target = {};
  Packer packer(writer, std::move(how));
  for (const char* path : paths)
    if (!packer.send(expanded(path), root_name(path))) return kFailed;
  const Packed& sum = packer.sum();
  const Frame end{
      .kind = FrameKind::end, .number = static_cast<std::uint32_t>(sum.files), .size = sum.bytes};
  return writer.put(end) && writer.flush() && sum.failures == 0 ? kDone : kFailed;
}

/// The names that the sandbox knows users or groups by.
class Accounts {
 public:
  /// `file`: /etc/passwd or /etc/group.
  explicit Accounts(const char* file)
      : text_(sys::read_file(file, kLargestAccounts).value_or("")) {}

  /// The number where it has no name, or one that can't be told.
  [[nodiscard]] std::string name_of(std::uint32_t number) {
    const auto [known, is_new] = known_.try_emplace(number, std::to_string(number));
    if (is_new)
      if (const std::string name = look_up(known->second); is_account_name(name))
        known->second = name;
    return known->second;
  }

 private:
  static constexpr std::size_t kLargestAccounts = std::size_t{1} << 20;

  /// NAME:PASSWORD:NUMBER and more of it on each line.
  [[nodiscard]] std::string look_up(const std::string& number) const {
    for (const auto line : std::views::split(text_, '\n')) {
      std::vector<std::string_view> fields;
      for (const auto field : std::views::split(line, ':')) {
        fields.emplace_back(field.begin(), field.end());
        if (fields.size() == 3) break;
      }
      if (fields.size() == 3 && fields[2] == number) return std::string(fields[0]);
    }
    return {};
  }

  std::string text_;
  std::map<std::uint32_t, std::string> known_;
};

Frame with_owner(Frame entry, const struct stat& facts) {
  static Accounts users("/etc/passwd");
  static Accounts groups("/etc/group");
  entry.owner = users.name_of(facts.st_uid);
  entry.group = groups.name_of(facts.st_gid);
  return entry;
}

Frame listed(int directory, const std::string& entry, const std::string& name,
             const struct stat& facts) {
  Frame frame{.kind = FrameKind::listed,
              .type = workspace::type_of(facts.st_mode),
              .mode = facts.st_mode & 0777,
              .size = static_cast<std::uint64_t>(facts.st_size),
              .modified = facts.st_mtim,
              .name = name};
  if (!S_ISLNK(facts.st_mode)) return frame;
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlinkat(directory, entry.c_str(), text.data(), text.size());
  if (size > 0) frame.text.assign(text.data(), static_cast<std::size_t>(size));
  return frame;
}

/// What a file is, then its bytes from `offset` on: at most so many, 0: to its end.
int read_file(std::uint64_t offset, std::uint64_t most, const std::string& typed) {
  Writer writer(STDOUT_FILENO);
  const auto end = [&writer](bool done) {
    const bool said = writer.put({.kind = FrameKind::end}) && writer.flush();
    return said && done ? kDone : kFailed;
  };
  const auto refuse = [&](Reason reason, int errno_value) {
    (void)writer.put(fault(typed, reason, errno_value));
    return end(false);
  };
  const std::string path = expanded(typed);
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return refuse(Reason::cannot_read, errno);
  if (S_ISDIR(facts.st_mode)) return refuse(Reason::cannot_read, EISDIR);
  if (!S_ISREG(facts.st_mode)) return refuse(reason_for(workspace::type_of(facts.st_mode)), 0);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) return refuse(Reason::cannot_read, errno);
  if (!S_ISREG(facts.st_mode)) return refuse(Reason::cannot_read, EAGAIN);  // it was replaced
  if (!writer.put(listed(AT_FDCWD, path, "it", facts))) return kFailed;
  if (facts.st_size == 0) {
    const auto content = unsized_content(file.get(), offset, most);
    if (!content) return refuse(Reason::cannot_read, content.error().errno_value);
    const bool sent = put_content(writer, facts, "it", *content).has_value();
    return sent ? end(true) : kFailed;
  }
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  std::uint64_t rest = offset < size ? size - offset : 0;
  if (most > 0 && most < rest) rest = most;
  if (!writer.put({.kind = FrameKind::file,
                   .mode = facts.st_mode & 0777,
                   .size = rest,
                   .modified = facts.st_mtim,
                   .name = "it"}))
    return kFailed;
  for (auto at = static_cast<off_t>(offset); rest > 0;) {
    const std::uint64_t count = std::min<std::uint64_t>(rest, kChunk);
    if (!writer.put({.kind = FrameKind::data, .size = count})) return kFailed;
    const auto read = writer.bytes_of(file.get(), at, count);
    if (!read) return kFailed;
    if (read->bytes < count)
      return refuse(read->errno_value == 0 ? Reason::shrank : Reason::cannot_read,
                    read->errno_value);
    at += static_cast<off_t>(count);
    rest -= count;
  }
  return end(writer.put({.kind = FrameKind::complete}).has_value());
}

/// A name in an open directory: what a path leads to, itself not followed.
struct Place {
  UniqueFd directory;
  std::string name;
};
Result<Place> place_of(const std::string& path) {
  const std::string name = root_name(path);
  if (name.empty()) return fail_errno(ErrorKind::host, "", "", EINVAL);
  std::string_view above = path;
  while (above.ends_with('/')) above.remove_suffix(1);
  above.remove_suffix(name.size());
  const std::string directory = above.empty() ? "." : std::string(above);
  return Place{.directory = SBX_TRY(sys::open_at(AT_FDCWD, directory, O_PATH | O_DIRECTORY)),
               .name = name};
}

/// Each of these: 0 or the errno that kept it from being done.
int make_directory(const std::string& path) {
  const std::string name = root_name(path);
  if (name.empty()) return EEXIST;
  const auto slash = path.find_last_not_of('/') == std::string::npos
                         ? std::string::npos
                         : path.rfind('/', path.find_last_not_of('/'));
  if (slash != std::string::npos && slash > 0)
    if (const auto above = make_directories(path.substr(0, slash)); !above)
      return above.error().errno_value;
  const auto place = place_of(path);
  if (!place) return place.error().errno_value;
  return held::make_directory(place->directory.get(), place->name, 0755) ? 0 : errno;
}

int move_name(const std::string& from, const std::string& to) {
  const auto source = place_of(from);
  if (!source) return source.error().errno_value;
  const auto target = place_of(to);
  if (!target) return target.error().errno_value;
  const bool done = held::rename({source->directory.get(), source->name},
                                 {target->directory.get(), target->name});
  return done ? 0 : errno;
}

int remove_name(const std::string& path, bool whole_tree) {
  const auto place = place_of(path);
  if (!place) return place.error().errno_value;
  const int directory = place->directory.get();
  struct stat facts{};
  if (::fstatat(directory, place->name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (!S_ISDIR(facts.st_mode)) return held::remove_file(directory, place->name) ? 0 : errno;
  if (!whole_tree) return EISDIR;
  workspace::remove_tree(directory, place->name);
  if (::fstatat(directory, place->name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return held::remove_directory(directory, place->name) ? 0 : errno;
}

int answer_change(const std::string& path, int errno_value) {
  Writer writer(STDOUT_FILENO);
  if (errno_value != 0) (void)writer.put(fault(path, Reason::cannot_write, errno_value));
  const bool said = writer.put({.kind = FrameKind::end}) && writer.flush();
  return said && errno_value == 0 ? kDone : kFailed;
}

/// A link is told of as itself.
int stat_one(const std::string& typed) {
  Writer writer(STDOUT_FILENO);
  const std::string path = expanded(typed);
  struct stat facts{};
  const bool is_there = ::lstat(path.c_str(), &facts) == 0;
  (void)writer.put(is_there ? with_owner(listed(AT_FDCWD, path, "it", facts), facts)
                            : fault(typed, Reason::cannot_read, errno));
  const bool said = writer.put({.kind = FrameKind::end}) && writer.flush();
  return said && is_there ? kDone : kFailed;
}

/// What is in the directories below, each after what is in the one above it.
Status list_below(Writer& writer, int root, std::vector<std::string> waiting, std::uint64_t depth,
                  const std::function<Status(const std::string& what, int errno_value)>& refuse) {
  for (std::size_t next = 0; next < waiting.size(); ++next) {
    const std::string path = waiting[next];
    const auto directory = open_directory(root, path);
    const auto names = directory
                           ? workspace::read_names(directory->get())
                           : Result<std::vector<std::string>>(std::unexpected(directory.error()));
    if (!names) {
      SBX_TRY(refuse(path, names.error().errno_value));
      continue;
    }
    for (const std::string& name : *names) {
      struct stat facts{};
      const std::string whole = path + "/" + name;
      if (!is_sound_path(whole)) {
        SBX_TRY(refuse(whole, ENAMETOOLONG));
      } else if (::fstatat(directory->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) {
        SBX_TRY(writer.put(with_owner(listed(directory->get(), name, whole, facts), facts)));
        const auto level = static_cast<std::uint64_t>(std::ranges::count(whole, '/')) + 1;
        if (S_ISDIR(facts.st_mode) && level < depth) waiting.push_back(whole);
      }
    }
  }
  return {};
}

/// A link to a directory is listed as the directory, any other as itself.
Status list(Writer& writer, const std::string& typed, std::uint64_t depth, bool& failed) {
  const std::string path = expanded(typed);
  const auto refuse = [&](const std::string& what, int errno_value) {
    failed = true;
    return writer.put(fault(what, Reason::cannot_read, errno_value));
  };
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) {
    if (::lstat(path.c_str(), &facts) != 0) return refuse(typed, errno);
    return writer.put(with_owner(listed(AT_FDCWD, path, root_name(path), facts), facts));
  }
  const auto directory = sys::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!directory) return refuse(typed, directory.error().errno_value);
  const auto names = workspace::read_names(directory->get());
  if (!names) return refuse(typed, names.error().errno_value);
  std::vector<std::string> below;
  for (const std::string& name : *names) {
    if (::fstatat(directory->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) {
      SBX_TRY(writer.put(with_owner(listed(directory->get(), name, name, facts), facts)));
      if (depth > 1 && S_ISDIR(facts.st_mode)) below.push_back(name);
    } else if (errno != ENOENT) {
      SBX_TRY(refuse(name, errno));
    }
  }
  return list_below(writer, directory->get(), std::move(below), depth, refuse);
}

int ls(const std::string& path, std::uint64_t depth) {
  Writer writer(STDOUT_FILENO);
  bool failed = false;
  const bool said =
      list(writer, path, depth, failed) && writer.put({.kind = FrameKind::end}) && writer.flush();
  return said && !failed ? kDone : kFailed;
}

}  // namespace

int inside_main(std::span<const char* const> arguments) {
  // A host that has seen enough closes its end; a full disk is an answer of write(2).
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  if (arguments.empty()) return kFailed;
  const std::string_view what = arguments[0];
  if (what == "put" && arguments.size() == 2) return put(arguments[1], What::tree);
  if (what == "write" && arguments.size() == 2) return put(arguments[1], What::one_file);
  if (what == "stat" && arguments.size() == 2) return stat_one(arguments[1]);
  if (arguments.size() == 2) {
    const std::string path = expanded(arguments[1]);
    if (what == "mkdir") return answer_change(arguments[1], make_directory(path));
    if (what == "rm" || what == "rm-r")
      return answer_change(arguments[1], remove_name(path, what == "rm-r"));
  }
  if (what == "mv" && arguments.size() == 3)
    return answer_change(arguments[1], move_name(expanded(arguments[1]), expanded(arguments[2])));
  std::uint64_t depth = 0;
  if (what == "ls" && arguments.size() == 3 && is_number(arguments[2], depth))
    return ls(arguments[1], depth);
  std::uint64_t offset = 0;
  std::uint64_t most = 0;
  if (what == "read" && arguments.size() == 4 && is_number(arguments[1], offset) &&
      is_number(arguments[2], most) && offset <= INT64_MAX)
    return read_file(offset, most, arguments[3]);
  std::uint64_t max_bytes = 0;
  std::uint64_t max_depth = 0;
  if (what == "get" && arguments.size() > 4 && is_number(arguments[1], max_bytes) &&
      is_number(arguments[2], max_depth))
    return get(max_bytes, max_depth, arguments[3], arguments.subspan(4));
  return kFailed;
}

}  // namespace sbx::transfer
