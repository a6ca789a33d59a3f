#include "transfer/host.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/obstacle.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "plan/files/path_text.hpp"
#include "transfer/archive.hpp"
#include "transfer/pack.hpp"
#include "workspace/names.hpp"
#include "workspace/tree.hpp"

namespace sbx::transfer {
namespace {

constexpr std::uint64_t kMostFaults = 100'000;                // of a report
constexpr std::uint64_t kMostHeld = std::uint64_t{64} << 20;  // bytes of names in a listing

/// Two of a name would be one after the transfer.
Status check_names(const std::vector<std::string>& paths) {
  std::set<std::string> names;
  for (const std::string& path : paths)
    if (const std::string name = root_name(path); !name.empty() && !names.insert(name).second)
      return fail(Error{.kind = ErrorKind::usage,
                        .code = "bad-input",
                        .message = "two of the paths end in '" + name + "'",
                        .hint = "copy them one after the other, to different places"});
  return {};
}

/// The directory that what a path names is in; of `dir/.`, whose contents arrive, `dir`.
std::string directory_around(std::string_view path) {
  const bool is_content = root_name(path).empty();
  while (path.size() > 1 && (path.ends_with('/') || path.ends_with("/."))) path.remove_suffix(1);
  const std::string whole(path);
  return is_content ? whole : workspace::directory_of(whole);
}

/// Rules for what arrives: only what was asked for, and none of the names that make the host run
/// something.
class Gate {
 public:
  explicit Gate(const Receiving& what) : what_(what) {
    for (const std::string& path : what.paths)
      asked_.push_back({.name = root_name(path), .directory = directory_around(path)});
  }

  std::string reason_against(const Frame& frame) const {
    const std::string& path = frame.name;
    const std::string root = path.substr(0, path.find('/'));
    const auto asked = std::ranges::find_if(
        asked_, [&](const Asked& each) { return each.name.empty() || each.name == root; });
    if (asked == asked_.end()) return "nobody asked for it";
    if (workspace::has_temporary_name(path)) return workspace::kTemporaryName;
    const std::string on_host = (what_.place == "/" ? "" : what_.place) + "/" + path;
    if (std::ranges::find(what_.policy_files, on_host) != what_.policy_files.end())
      return "a policy file";
    const FileType type = frame.kind == FrameKind::directory ? FileType::directory
                          : frame.kind == FrameKind::link    ? FileType::link
                                                             : FileType::file;
    auto guard = workspace::reason_to_protect(asked->directory, path, type);
    if (guard.empty()) guard = workspace::reason_to_protect(what_.place, path, type);
    const bool is_named =
        std::ranges::any_of(asked_, [&](const Asked& each) { return each.name == path; });
    if (guard.empty() || (is_named && type != FileType::directory)) return {};
    return workspace::protected_words(guard, "the file itself must be named");
  }

 private:
  struct Asked {
    std::string name;       ///< under which it arrives
    std::string directory;  ///< the directory that it is in
  };
  const Receiving& what_;
  std::vector<Asked> asked_;
};

/// Names up to kMostLeft of what was left out, counts the others.
void add_left(std::vector<workspace::Left>& left, std::uint64_t& more, workspace::Left one) {
  if (left.size() < kMostLeft)
    left.push_back(std::move(one));
  else
    ++more;
}

workspace::Left left_of(const Frame& fault) {
  return {.path = fault.name,
          .why = words_of(fault.reason, fault.number),
          .failed = is_failure(fault.reason),
          .obstacle = obstacle_of(fault.reason, fault.number),
          .side = Side::sandbox};
}

/// What the kernel's answer means in a sandbox that files are put into.
const char* cure_of_put(const Frame& fault) {
  if (fault.reason != Reason::cannot_write) return "";
  switch (fault.number) {
    case EFBIG:
      return "; limits.file_size bounds each file: sbx session start --set "
             "'limits.file_size=\"4G\"'";
    case EROFS:
      return "; a session writes in its working directory, /tmp, its home and /dev/shm, and "
             "where --write says";
    default:
      return "";
  }
}

constexpr std::size_t kBlock = std::size_t{64} << 10;
constexpr const char* kOneFile = "it";  ///< in an archive of one file, whose place the words say

/// Why the sandbox did not do what was asked for.
Error refusal(const Frame& fault, const std::string& path) {
  const bool writes = fault.reason == Reason::cannot_write;
  return {.kind = ErrorKind::host,
          .code = writes ? "cannot-write" : "cannot-read",
          .message = "'" + printable(path) + "' in the session: " +
                     words_of(fault.reason, fault.number) + cure_of_put(fault),
          .hint = "sbx session ls NAME lists what is in the session's directory",
          .obstacle = obstacle_of(fault.reason, fault.number),
          .side = Side::sandbox};
}

}  // namespace

Result<std::vector<std::string>> put_arguments(const std::vector<std::string>& sources,
                                               const std::string& target) {
  SBX_TRY(check_names(sources));
  std::string place = target.empty() ? "." : target;
  const bool into =
      sources.size() > 1 || std::ranges::any_of(sources, [](const std::string& source) {
        return root_name(source).empty();
      });
  if (into && !place.ends_with('/')) place += '/';
  return std::vector<std::string>{"put", place};
}

Result<std::vector<std::string>> get_arguments(const std::vector<std::string>& paths,
                                               const workspace::OutLimits& limits,
                                               const std::string& place) {
  SBX_TRY(check_names(paths));
  for (const std::string& path : paths)
    if (path.starts_with('/') && plan::normal(path) == "/")
      return fail(
          Error{.kind = ErrorKind::usage,
                .code = "bad-input",
                .message = "'" + path + "' is the whole sandbox, with the programs of the host",
                .hint = "name a directory in it, such as /tmp"});
  std::vector<std::string> arguments{"get", std::to_string(limits.max_bytes),
                                     std::to_string(limits.max_depth),
                                     place.empty() ? "/dev/null" : place};
  arguments.insert(arguments.end(), paths.begin(), paths.end());
  return arguments;
}

std::vector<std::string> ls_arguments(const std::string& path, std::uint64_t depth) {
  return {"ls", path.empty() ? "." : path, std::to_string(depth)};
}

std::vector<std::string> read_arguments(const std::string& path, Range range) {
  return {"read", std::to_string(range.offset), std::to_string(range.most), path};
}

Status send_stream(int to, int from, Passed passed) {
  Writer writer(to);
  std::uint64_t bytes = 0;
  std::vector<char> block(kBlock);
  SBX_TRY(writer.put(
      {.kind = FrameKind::stream, .mode = 0666 & ~sys::file_mode_mask(), .name = kOneFile}));
  for (;;) {
    const ssize_t got = ::read(from, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::host, "cannot-read", "cannot read standard input");
    if (got == 0) break;
    const auto count = static_cast<std::uint64_t>(got);
    SBX_TRY(writer.put({.kind = FrameKind::data, .size = count}));
    SBX_TRY(writer.bytes({block.data(), count}));
    SBX_TRY(writer.flush());
    if (passed) passed(bytes += count);
  }
  SBX_TRY(writer.put({.kind = FrameKind::complete}));
  SBX_TRY(writer.put({.kind = FrameKind::end, .number = 1, .size = bytes}));
  return writer.flush();
}

Result<Frame> read_answer(int from, const std::string& path,
                          const std::function<std::string(int errno_value)>& cure) {
  Reader reader(from);
  Frame last;
  for (;;) {
    const Frame frame = SBX_TRY(reader.next());
    if (frame.kind == FrameKind::end) return last;
    if (frame.kind == FrameKind::fault) {
      Error error = refusal(frame, path);
      const bool told = frame.reason == Reason::cannot_write && cure;
      if (std::string known = told ? cure(static_cast<int>(frame.number)) : ""; !known.empty())
        error.hint = std::move(known);
      return fail(std::move(error));
    }
    if (frame.kind != FrameKind::listed || last.kind == FrameKind::listed)
      return broken("files where one answer should come");
    last = frame;
  }
}

namespace {

struct OneTaken {
  Frame whole;  ///< as a listing has it
  Frame part;
};

/// The bytes of the one file that comes, to `file`. Reads to the end of the archive.
Result<OneTaken> take_one(int from, int file, const OneFile& what) {
  Reader reader(from, what.passed);
  const Frame whole = SBX_TRY(reader.next());
  if (whole.kind == FrameKind::fault) return fail(refusal(whole, what.path));
  const Frame first = SBX_TRY(reader.next());
  if (first.kind == FrameKind::fault) return fail(refusal(first, what.path));
  if (whole.kind != FrameKind::listed || first.kind != FrameKind::file)
    return broken("something else where a file should come");
  if (first.size > what.max_bytes)
    return fail(Error{.kind = ErrorKind::host,
                      .code = "outputs-exceeded",
                      .message = "'" + printable(what.path) +
                                 "' has more bytes than may be "
                                 "brought out: " +
                                 std::to_string(first.size),
                      .hint = "--offset and --limit bring out a part; start the session with a "
                              "larger filesystem.outputs.max_bytes",
                      .obstacle = Obstacle::too_large,
                      .side = Side::sandbox});
  for (;;) {
    const Frame frame = SBX_TRY(reader.next());
    if (frame.kind == FrameKind::fault) return fail(refusal(frame, what.path));
    if (frame.kind == FrameKind::complete) break;
    if (frame.kind != FrameKind::data) return broken("a hole in a file that is passed on");
    const auto written = SBX_TRY(reader.take(file));
    if (written.errno_value != 0)
      return fail_errno(ErrorKind::host, "cannot-write", "cannot write " + what.shown,
                        written.errno_value);
  }
  if (SBX_TRY(reader.next()).kind != FrameKind::end) return broken("more than one file");
  return OneTaken{.whole = whole, .part = first};
}

}  // namespace

Result<std::uint64_t> receive_stream(int from, int to, const OneFile& what) {
  return SBX_TRY(take_one(from, to, what)).part.size;
}

Result<Part> receive_part(int from, const OneFile& what) {
  const UniqueFd content = SBX_TRY(sys::in_memory(""));
  const OneTaken taken = SBX_TRY(take_one(from, content.get(), what));
  (void)::lseek(content.get(), 0, SEEK_SET);
  return Part{.bytes = SBX_TRY(sys::read_all(content.get(), taken.part.size)),
              .size = taken.whole.size};
}

Result<Brought> receive_file(int from, int directory, const std::string& name,
                             const OneFile& what) {
  struct stat facts{};
  if (::fstat(directory, &facts) != 0)
    return fail_errno(ErrorKind::host, "cannot-put", "cannot look at the directory of --as");
  const auto no = [&](std::string why, Obstacle obstacle) {
    return fail(Error{.kind = ErrorKind::host,
                      .code = "cannot-put",
                      .message = "'" + printable(what.shown) + "' " + std::move(why),
                      .hint = "--as takes the name of a file, new or to be replaced",
                      .obstacle = obstacle});
  };
  struct stat there{};
  const bool is_there = ::fstatat(directory, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && S_ISDIR(there.st_mode)) return no("is a directory", Obstacle::is_directory);
  if (is_there && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
    return no("is there, and not a regular file", Obstacle::exists);
  if (workspace::is_temporary(name)) return no(workspace::kTemporaryName, Obstacle::not_permitted);
  SBX_TRY(workspace::lock_directory(directory, {}));
  workspace::remove_temporaries(directory);  // of one that was killed
  const mode_t umask = sys::file_mode_mask();
  auto file = SBX_TRY(workspace::NewFile::make(directory, name));
  const Frame got = SBX_TRY(take_one(from, file.fd(), what)).part;
  SBX_TRY(file.finish(workspace::mode_in_place(directory, name, got.mode, umask),
                      workspace::owner_in(facts)));
  return Brought{.path = name, .bytes = got.size, .replaced = is_there};
}

Sent send_files(int to, const std::vector<std::string>& sources, Passed passed) {
  Sent sent;
  Writer writer(to, std::move(passed));
  Packer packer(writer,
                {.links = Links::inside,
                 .leave = [&](const std::string& path, Reason reason, std::uint32_t number) {
                   sent.has_failures = sent.has_failures || is_failure(reason);
                   add_left(sent.left, sent.more_left,
                            {.path = path,
                             .why = words_of(reason, number),
                             .failed = is_failure(reason),
                             .obstacle = obstacle_of(reason, number)});
                 }});
  const auto send_all = [&]() -> Status {
    for (const std::string& source : sources) SBX_TRY(packer.send(source, root_name(source)));
    SBX_TRY(writer.put({.kind = FrameKind::end,
                        .number = static_cast<std::uint32_t>(packer.sum().files),
                        .size = packer.sum().bytes}));
    return writer.flush();
  };
  sent.is_whole = send_all().has_value();
  sent.bytes = packer.sum().bytes;
  sent.files = packer.sum().files;
  return sent;
}

Result<Report> read_report(int from) {
  Report report;
  Reader reader(from);
  for (;;) {
    const Frame frame = SBX_TRY(reader.next());
    if (frame.kind == FrameKind::end) {
      report.bytes = frame.size;
      report.files = frame.number;
      return report;
    }
    if (frame.kind == FrameKind::written) {
      report.written.push_back({.path = frame.name,
                                .type = frame.type,
                                .bytes = frame.size,
                                .replaced = frame.number == 1});
    } else if (frame.kind != FrameKind::fault) {
      return broken("files where a report should come");
    }
    if (report.more_left > kMostFaults || report.written.size() > kMostFaults)
      return broken("a report without an end");
    if (frame.kind == FrameKind::written) continue;
    workspace::Left left = left_of(frame);
    left.why += cure_of_put(frame);
    add_left(report.left, report.more_left, std::move(left));
  }
}

Result<Unpacked> receive_files(int from, int target, const Receiving& what) {
  struct stat facts{};
  if (::fstat(target, &facts) != 0)
    return fail_errno(ErrorKind::host, "cannot-put", "cannot look at the directory of --out");
  SBX_TRY(workspace::lock_directory(target, what.waiting));
  const Gate gate(what);
  Reader reader(from, what.passed);
  Unpacker unpacker(
      reader,
      {.trust = Trust::none,
       .open_directory =
           [target](const std::string& path) { return workspace::open_directory(target, path); },
       .owner = workspace::owner_in(facts),
       .umask = sys::file_mode_mask(),
       .limits = what.limits,
       .reason_against = [&gate](const Frame& entry) { return gate.reason_against(entry); }});
  Unpacked done = unpacker.run();
  (void)::flock(target, LOCK_UN);  // closing it would do the same
  return done;
}

Result<Listing> read_listing(int from, std::uint64_t depth, std::size_t most) {
  Listing listing;
  Reader reader(from);
  std::uint64_t unnamed = 0;
  std::uint64_t held = 0;
  for (;;) {
    Frame frame = SBX_TRY(reader.next());
    if (frame.kind == FrameKind::end) break;
    if (frame.kind == FrameKind::fault) {
      add_left(listing.left, unnamed, left_of(frame));
      if (unnamed > most) return broken("a listing without an end");
      continue;
    }
    if (frame.kind != FrameKind::listed) return broken("files where a listing should come");
    if (static_cast<std::uint64_t>(std::ranges::count(frame.name, '/')) >= depth)
      return broken("a listing of more than was asked for");
    held += frame.name.size() + frame.text.size() + frame.owner.size() + frame.group.size();
    if (listing.entries.size() == most || held > kMostHeld) {
      listing.is_cut = true;
      break;
    }
    listing.entries.push_back({.name = std::move(frame.name),
                               .type = frame.type,
                               .mode = frame.mode,
                               .bytes = frame.size,
                               .modified = frame.modified,
                               .leads_to = std::move(frame.text),
                               .owner = std::move(frame.owner),
                               .group = std::move(frame.group)});
  }
  std::ranges::sort(listing.entries, {}, &Listed::name);
  return listing;
}

}  // namespace sbx::transfer
