#include "transfer/inside.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
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
#include "workspace/tree.hpp"

namespace sbx::transfer {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr std::size_t kMostRefused = 10'000;

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

int put(const std::string& path) {
  // Files are made with their modes: a filter may refuse fchmod(2).
  (void)::umask(0);
  Writer writer(STDOUT_FILENO);
  const auto report = [&](const Status& said) { return said && writer.flush() ? kDone : kFailed; };
  const auto target = open_target(expanded(path));
  if (!target) {
    (void)report(writer.put(fault(path, Reason::cannot_write, target.error().errno_value)));
    (void)report(writer.put({.kind = FrameKind::end}));
    return kFailed;
  }
  // Said at the end: the host reads nothing as long as it writes.
  std::vector<Frame> refused;
  Reader reader(STDIN_FILENO);
  const int root = target->root.get();
  Unpacker unpacker(
      reader, {.trust = Trust::archive,
               .open_directory =
                   [root](const std::string& directory) { return open_directory(root, directory); },
               .name_of = Renaming(target->name),
               .refused =
                   [&](const std::string& name, int errno_value) {
                     if (refused.size() < kMostRefused)
                       refused.push_back(fault(path_at(path, target->name, name),
                                               Reason::cannot_write, errno_value));
                   }});
  const Unpacked done = unpacker.run();
  for (const Frame& each : refused)
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

/// A link to a directory is listed as the directory, any other as itself.
Status list(Writer& writer, const std::string& typed, bool& failed) {
  const std::string path = expanded(typed);
  const auto refuse = [&](const std::string& what, int errno_value) {
    failed = true;
    return writer.put(fault(what, Reason::cannot_read, errno_value));
  };
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) {
    if (::lstat(path.c_str(), &facts) != 0) return refuse(typed, errno);
    return writer.put(listed(AT_FDCWD, path, root_name(path), facts));
  }
  const auto directory = sys::open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!directory) return refuse(typed, directory.error().errno_value);
  const auto names = workspace::read_names(directory->get());
  if (!names) return refuse(typed, names.error().errno_value);
  for (const std::string& name : *names) {
    if (::fstatat(directory->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
      SBX_TRY(writer.put(listed(directory->get(), name, name, facts)));
    else if (errno != ENOENT)
      SBX_TRY(refuse(name, errno));
  }
  return {};
}

int ls(const std::string& path) {
  Writer writer(STDOUT_FILENO);
  bool failed = false;
  const bool said =
      list(writer, path, failed) && writer.put({.kind = FrameKind::end}) && writer.flush();
  return said && !failed ? kDone : kFailed;
}

}  // namespace

int inside_main(std::span<const char* const> arguments) {
  // A host that has seen enough closes its end; a full disk is an answer of write(2).
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  if (arguments.empty()) return kFailed;
  const std::string_view what = arguments[0];
  if (what == "put" && arguments.size() == 2) return put(arguments[1]);
  if (what == "ls" && arguments.size() == 2) return ls(arguments[1]);
  std::uint64_t max_bytes = 0;
  std::uint64_t max_depth = 0;
  if (what == "get" && arguments.size() > 4 && is_number(arguments[1], max_bytes) &&
      is_number(arguments[2], max_depth))
    return get(max_bytes, max_depth, arguments[3], arguments.subspan(4));
  return kFailed;
}

}  // namespace sbx::transfer
