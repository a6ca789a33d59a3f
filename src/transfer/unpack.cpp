#include "transfer/unpack.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/obstacle.hpp"
#include "plan/files/pattern.hpp"
#include "workspace/names.hpp"
#include "workspace/tree.hpp"

namespace sbx::transfer {
namespace {

constexpr std::uint64_t kMoreEntries = 100'000;  // that may be left out, beyond those that may come
constexpr std::uint64_t kMostFiles = 1'000'000'000;
constexpr std::uint64_t kMoreBytes = std::uint64_t{64} << 20;  // that may be skipped, likewise
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;
constexpr std::uint64_t kPerFrame = 64;                          // what reading one costs, in bytes
constexpr std::uint64_t kRemembered = std::uint64_t{256} << 20;  // bytes of names
constexpr int kMostHops = 40;                                    // of links, as path_resolution(7)

std::string errno_words(const char* what, int errno_value) {
  return std::string(what) + ": " + ::strerrordesc_np(errno_value);
}

std::unexpected<Error> too_much() {
  return fail(Error{.kind = ErrorKind::host,
                    .code = "outputs-exceeded",
                    .message = "the paths hold far more than may be brought out",
                    .hint = "name less, or start the session with larger "
                            "filesystem.outputs.max_files and filesystem.outputs.max_bytes"});
}

/// A time to come confuses whoever compares times, make(1) for one.
timespec not_to_come(timespec time) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return time.tv_sec > now.tv_sec || time.tv_sec < 0 ? now : time;
}

bool is_taken(int directory, const std::string& path) {
  struct stat facts{};
  return ::fstatat(directory, workspace::name_of(path).c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
}

void set_time(int file, timespec modified) {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, not_to_come(modified)};
  (void)held::set_times(file, times);  // a file with its own time is as good
}

}  // namespace

Unpacked Unpacker::run() {
  if (const Status status = take_all(); !status) {
    done_.broken = status.error();
    done_.has_failures = true;
  }
  make_links();
  finish_directories();
  return std::move(done_);
}

Status Unpacker::take_all() {
  for (;;) {
    Frame frame = SBX_TRY(reader_.next());
    if (frame.kind == FrameKind::end) return {};
    if (how_.name_of && frame.kind != FrameKind::fault) frame.name = how_.name_of(frame.name);
    SBX_TRY(take(frame));
  }
}

Status Unpacker::take(const Frame& frame) {
  if (frame.kind == FrameKind::listed || frame.kind == FrameKind::written)
    return broken("a listing where files should come");
  if (frame.kind == FrameKind::stream && how_.trust == Trust::none)
    return broken("a file without a size");
  if (frame.kind == FrameKind::fault) {
    (void)SBX_TRY(admit(frame));
    leave(frame);
    return {};
  }
  if (!SBX_TRY(admit(frame))) {
    int ignored = 0;
    if (frame.kind == FrameKind::file || frame.kind == FrameKind::stream)
      (void)SBX_TRY(take_content(-1, ignored));
    return {};
  }
  switch (frame.kind) {
    case FrameKind::file:
    case FrameKind::stream:
      return take_file(frame);
    case FrameKind::directory:
      return take_directory(frame);
    default:
      links_.push_back(frame);
      leading_.emplace(frame.name, frame.text);
      return {};
  }
}

Result<bool> Unpacker::admit(const Frame& frame) {
  if (how_.trust == Trust::archive) {
    std::string why = frame.kind == FrameKind::fault ? std::string() : reason_against(frame);
    if (!why.empty()) leave(frame.name, std::move(why), true);
    return why.empty();
  }
  // Whatever it is: what is left out costs time too, and nothing else bounds it.
  if (++entries_ > 2 * std::min(how_.limits.max_files, kMostFiles) + kMoreEntries)
    return too_much();
  remembered_ += frame.name.size() + frame.text.size();
  if (remembered_ > kRemembered) return broken("too many long names");
  if (frame.kind == FrameKind::fault) return true;
  const std::string parent = workspace::directory_of(frame.name);
  if (shut_.contains(parent)) {  // it was named when it was left out
    if (frame.kind == FrameKind::directory) shut_.insert(frame.name);
    return false;
  }
  std::string why = reason_against(frame);
  if (why.empty()) return true;
  leave(frame.name, std::move(why), false);
  if (frame.kind == FrameKind::directory) shut_.insert(frame.name);
  return false;
}

std::string Unpacker::reason_against(const Frame& frame) const {
  if (how_.reason_against)
    if (std::string why = how_.reason_against(frame); !why.empty()) return why;
  if (how_.trust == Trust::archive) return {};
  const std::string parent = workspace::directory_of(frame.name);
  if (parent != ".") {
    const auto above = known_.find(parent);
    if (above == known_.end() || above->second != FileType::directory)
      return "its directory was not sent";
  }
  if (known_.contains(frame.name) || leading_.contains(frame.name))
    return "the name was sent twice";
  const workspace::OutSum so_far =
      frame.kind == FrameKind::directory
          ? workspace::OutSum{.bytes = done_.sum.bytes, .files = directory_count_}
          : workspace::OutSum{.bytes = done_.sum.bytes, .files = done_.sum.files + links_.size()};
  return workspace::reason_beyond(how_.limits, so_far, frame.name,
                                  frame.kind == FrameKind::file ? frame.size : 0);
}

/// The directory of an entry, kept open: most entries have the one of the entry before.
Result<int> Unpacker::directory_of(const std::string& path) {
  const std::string directory = workspace::directory_of(path);
  if (!open_.valid() || open_path_ != directory) {
    open_ = SBX_TRY(open_same(directory));
    open_path_ = directory;
    if (cleaned_.insert(directory).second) clean(open_.get());
  }
  return open_.get();
}

void Unpacker::clean(int directory) const {
  if (how_.trust == Trust::none)
    workspace::remove_temporaries(directory);
  else
    workspace::remove_dead_temporaries(directory);
}

/// The host's owner of a directory may exchange those below it while a transfer lasts.
Result<UniqueFd> Unpacker::open_same(const std::string& path) {
  UniqueFd directory = SBX_TRY(how_.open_directory(path));
  const auto now = held::identity_of(directory.get());
  const auto [first, is_new] = directories_.try_emplace(path, now.value_or(held::Identity{}));
  if (now && first->second == *now) return directory;
  return fail(Error{.kind = ErrorKind::host,
                    .code = "replaced",
                    .message = "another process replaced its directory"});
}

Status Unpacker::take_file(const Frame& frame) {
  int ignored = 0;
  const auto directory = directory_of(frame.name);
  const std::string name = workspace::name_of(frame.name);
  if (!directory) {
    leave(frame.name, directory.error());
  } else if (!is_free(*directory, frame.name)) {
    // said
  } else if (auto file = workspace::NewFile::make(
                 *directory, name,
                 how_.trust == Trust::archive ? mode_of(*directory, frame) : mode_t{0600});
             !file) {
    leave(frame.name, file.error());
  } else {
    return write_file(frame, *file);
  }
  (void)SBX_TRY(take_content(-1, ignored));
  return {};
}

/// An archive sets modes. A stream only changes what a file holds, as a shell's redirection does.
mode_t Unpacker::mode_of(int directory, const Frame& frame) const {
  const bool is_archive = how_.trust == Trust::archive;
  if (is_archive && frame.kind == FrameKind::file) return frame.mode;
  return workspace::mode_in_place(directory, workspace::name_of(frame.name), frame.mode,
                                  is_archive ? mode_t{0} : how_.umask);  // the sender's is applied
}

Status Unpacker::write_file(Frame frame, workspace::NewFile& file) {
  int errno_value = 0;
  if (!SBX_TRY(take_content(file.fd(), errno_value, &frame.size))) return {};
  if (errno_value != 0) {
    leave(frame.name, errno_words("cannot write", errno_value), true, errno_value);
    return {};
  }
  if (frame.kind == FrameKind::file) set_time(file.fd(), frame.modified);
  const mode_t mode = mode_of(open_.get(), frame);
  const bool replaces = is_taken(open_.get(), frame.name);
  if (const Status done = file.finish(mode, how_.owner); !done) {
    leave(frame.name, done.error());
    return {};
  }
  done_.sum.bytes += frame.size;
  ++done_.sum.files;
  note_brought(frame, FileType::file, replaces);
  return {};
}

Result<bool> Unpacker::take_content(int file, int& errno_value, std::uint64_t* size) {
  bool ends_with_hole = false;
  std::uint64_t at = 0;
  for (;;) {
    const Frame frame = SBX_TRY(reader_.next());
    if (file < 0 && how_.trust == Trust::none) {
      skipped_ += kPerFrame + (frame.kind == FrameKind::data ? frame.size : 0);
      if (skipped_ > std::min(how_.limits.max_bytes, kMostBytes) + kMoreBytes) return too_much();
    }
    switch (frame.kind) {
      case FrameKind::data: {
        const auto written = SBX_TRY(reader_.take(errno_value == 0 ? file : -1));
        if (errno_value == 0) errno_value = written.errno_value;
        at += frame.size;
        ends_with_hole = false;
        break;
      }
      case FrameKind::hole:
        at += frame.size;
        ends_with_hole = true;
        if (file >= 0 && errno_value == 0 && ::lseek(file, static_cast<off_t>(at), SEEK_SET) < 0)
          errno_value = errno;
        break;
      case FrameKind::complete:
        if (file >= 0 && errno_value == 0 && ends_with_hole &&
            ::ftruncate(file, static_cast<off_t>(at)) != 0)
          errno_value = errno;
        if (size != nullptr) *size = at;
        return true;
      default:  // a fault: the reader lets nothing else come here
        if (file >= 0) leave(frame);
        return false;
    }
  }
}

Status Unpacker::take_directory(const Frame& frame) {
  ++directory_count_;
  const auto directory = directory_of(frame.name);
  if (!directory) {
    leave(frame.name, directory.error());
    shut_.insert(frame.name);
    return {};
  }
  if (const Status made = make_directory(*directory, frame); !made) {
    leave(frame.name, made.error());
    shut_.insert(frame.name);
    return {};
  }
  note_brought(frame, FileType::directory);
  return {};
}

Status Unpacker::make_directory(int directory, const Frame& frame) {
  const std::string name = workspace::name_of(frame.name);
  const auto made = held::make_and_open(directory, name);
  if (!made) {
    struct stat facts{};
    const bool is_there = made.error().errno_value == EEXIST &&
                          ::fstatat(directory, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                          S_ISDIR(facts.st_mode);
    return is_there ? Status() : std::unexpected(made.error());
  }
  const auto identity = held::identity_of(made->get());
  if (!identity) return {};
  directories_[frame.name] = *identity;
  made_.push_back(
      {.path = frame.name, .mode = frame.mode, .modified = frame.modified, .identity = *identity});
  if (how_.owner)
    (void)workspace::give_to(made->get(), *how_.owner, frame.name);  // it stays the caller's then
  return {};
}

bool Unpacker::leads_to_brought(const Frame& link) const {
  if (link.text.starts_with('/')) return false;
  // Part by part, as the kernel would: each that is a link of the archive is replaced by its text.
  std::vector<std::string> ahead;
  const auto go = [&ahead](std::string_view text) {
    const std::vector<std::string> parts = plan::parts_of(text);
    ahead.insert(ahead.end(), parts.rbegin(), parts.rend());
  };
  go(link.text);
  std::string at = workspace::directory_of(link.name);
  for (int hops = 0; !ahead.empty();) {
    const std::string part = std::move(ahead.back());
    ahead.pop_back();
    if (part == "..") {
      if (at == ".") return false;
      at = workspace::directory_of(at);
      continue;
    }
    const std::string next = workspace::join(at, part);
    if (const auto another = leading_.find(next); another != leading_.end()) {
      if (another->second.starts_with('/') || ++hops > kMostHops) return false;
      go(another->second);
      continue;
    }
    const auto found = known_.find(next);
    if (found == known_.end() || (found->second != FileType::directory && !ahead.empty()))
      return false;
    at = next;
  }
  return at != ".";
}

void Unpacker::make_links() {
  for (const Frame& link : links_) {
    if (done_.broken) {
      leave(link.name, words_of(Reason::cut, 0), true);
      continue;
    }
    if (how_.trust == Trust::none && !leads_to_brought(link)) {
      leave(link.name, "a symbolic link to something that was not brought out", false);
      continue;
    }
    const auto directory = directory_of(link.name);
    if (!directory) {
      leave(link.name, directory.error());
      continue;
    }
    if (!is_free(*directory, link.name)) continue;
    const std::string name = workspace::name_of(link.name);
    const bool replaces = is_taken(*directory, link.name);
    if (const Status done = workspace::put_link(link.text, *directory, name, how_.owner); !done)
      leave(link.name, done.error());
    else
      note_brought(link, FileType::link, replaces);
  }
}

/// Last, children first: a closed directory can't be filled, and filling it moves its time.
void Unpacker::finish_directories() {
  for (const Made& each : made_ | std::views::reverse) {
    const auto directory = how_.open_directory(each.path);
    if (!directory) continue;  // somebody else has taken it away
    if (held::identity_of(directory->get()) != each.identity) {
      leave(each.path, "another process replaced it: mode and time are not set", true, EBUSY);
      continue;
    }
    set_time(directory->get(), each.modified);
    // Its owner must be able to remove it again.
    (void)held::set_mode(directory->get(),
                         (each.mode & 0777 & ~how_.umask) | 0700);  // 0700 else, which harms nobody
  }
}

bool Unpacker::is_free(int directory, const std::string& path) {
  struct stat facts{};
  if (::fstatat(directory, workspace::name_of(path).c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
      S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode))
    return true;
  leave(path,
        std::string("there is ") + workspace::describe(workspace::type_of(facts.st_mode)) +
            " of this name",
        true, S_ISDIR(facts.st_mode) ? EISDIR : EEXIST);
  return false;
}

void Unpacker::leave(const std::string& path, std::string why, bool failed, int errno_value) {
  done_.has_failures = done_.has_failures || failed;
  if (how_.refused) return how_.refused(path, errno_value);
  if (done_.left.size() >= kMostLeft)
    ++done_.more_left;
  else
    done_.left.push_back({.path = path,
                          .why = std::move(why),
                          .failed = failed,
                          .obstacle = sbx::obstacle_of(errno_value)});
}

void Unpacker::leave(const Frame& fault) {
  if (how_.refused) return;
  leave(fault.name, words_of(fault.reason, fault.number), is_failure(fault.reason));
  if (done_.left.empty() || done_.more_left > 0) return;
  done_.left.back().obstacle = obstacle_of(fault.reason, fault.number);
  done_.left.back().side = Side::sandbox;
}

void Unpacker::note_brought(const Frame& frame, FileType type, bool replaced) {
  Brought done{.path = frame.name,
               .type = type,
               .bytes = type == FileType::file ? frame.size : 0,
               .replaced = replaced};
  if (how_.wrote && type != FileType::directory) how_.wrote(done);
  if (how_.trust == Trust::archive) return;
  if (type != FileType::link) known_.emplace(frame.name, type);
  done_.brought.push_back(std::move(done));
}

}  // namespace sbx::transfer
