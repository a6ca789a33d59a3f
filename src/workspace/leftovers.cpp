#include "workspace/leftovers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/random.hpp"
#include "base/sys.hpp"
#include "workspace/put.hpp"
#include "workspace/state.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

constexpr const char* kDirectory = "staged";
constexpr std::size_t kLargest = std::size_t{64} << 20;

// One note ends with a zero byte, which no path has: "content elsewhere", "make PATH", "made DEVICE
// INODE PATH", "replace".
constexpr std::string_view kElsewhere = "content elsewhere";
constexpr std::string_view kMake = "make ";
constexpr std::string_view kMade = "made ";
constexpr std::string_view kReplace = "replace";

struct Leftover {
  std::string path;
  std::optional<held::Identity>
      identity;  ///< nothing: nobody knows whether it was made; then it is empty
};
struct Record {
  std::vector<Leftover> leftovers;
  bool is_elsewhere = false;
  bool replaces = false;
};

bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

void read_note(std::string_view note, Record& record) {
  if (note == kElsewhere) record.is_elsewhere = true;
  if (note == kReplace) record.replaces = true;
  if (note.starts_with(kMake))
    record.leftovers.push_back({.path = std::string(note.substr(kMake.size())), .identity = {}});
  if (!note.starts_with(kMade)) return;
  note.remove_prefix(kMade.size());
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  if (take_number(note, device) && take_number(note, inode) && !record.leftovers.empty() &&
      record.leftovers.back().path == note)
    record.leftovers.back().identity = held::Identity{.device = device, .inode = inode};
}

Record read_notes(std::string_view text) {
  Record record;
  // The last one may be torn.
  for (auto end = text.find('\0'); end != std::string_view::npos; end = text.find('\0')) {
    read_note(text.substr(0, end), record);
    text.remove_prefix(end + 1);
  }
  return record;
}

/// False: it stays, because it has what nothing else has.
bool remove_one(const Leftover& leftover, bool may_be_only_copy) {
  // A note is only text: what it names has to be what staging.cpp makes.
  if (!leftover.path.starts_with('/') || !is_temporary(name_of(leftover.path))) return true;
  const auto above =
      sys::open_resolved(AT_FDCWD, directory_of(leftover.path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                         RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!above) return true;
  const std::string name = name_of(leftover.path);
  if (!leftover.identity) {
    (void)held::remove_directory(above->get(), name);  // only an empty one goes
    return true;
  }
  const auto directory = held::open_name(above->get(), name, O_RDONLY | O_DIRECTORY);
  if (!directory || held::identity_of(directory->get()) != leftover.identity) return true;
  if (held::remove_directory(above->get(), name)) return true;
  if (may_be_only_copy) return false;
  (void)remove_contents(directory->get());
  (void)held::remove_directory(above->get(), name);  // what stays does no harm
  return true;
}

}  // namespace

Notes Notes::begin(const std::string& state_directory, Content content) {
  Notes notes;
  notes.state_directory_ = state_directory;
  notes.content_ = content;
  return notes;
}

/// At the first note: an application that writes nothing new needs none.
void Notes::open() {
  if (std::exchange(is_open_, true) || state_directory_.empty()) return;
  auto directory = open_state(state_directory_, kDirectory, Missing::is_made);
  if (!directory) return;
  name_ = random_hex();
  file_ = UniqueFd(::openat(directory->get(), name_.c_str(),
                            O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_.valid() || ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return;
  directory_ = std::move(*directory);
  if (content_ == Content::elsewhere) write(std::string(kElsewhere));
}

Notes::Notes(Notes&& other) noexcept
    : state_directory_(std::move(other.state_directory_)),
      content_(other.content_),
      is_open_(other.is_open_),
      directory_(std::move(other.directory_)),
      file_(std::move(other.file_)),
      name_(std::exchange(other.name_, {})) {}

Notes::~Notes() {
  if (directory_.valid()) (void)held::remove_file(directory_.get(), name_);
}

void Notes::about_to_make(const std::string& path) {
  open();
  write(std::string(kMake) + path);
}

void Notes::made(const std::string& path, held::Identity identity) {
  write(fmt::format("{}{} {} {}", kMade, identity.device, identity.inode, path));
}

void Notes::about_to_replace() {
  write(std::string(kReplace));
}

void Notes::leave_for_next() {
  write(std::string(kElsewhere));
  directory_.reset();
}

/// Without room the application goes on: a note is of use only after a kill.
void Notes::write(const std::string& text) {
  if (directory_.valid())
    (void)sys::write_all(file_.get(), std::string_view(text.c_str(), text.size() + 1));
}

std::vector<std::string> remove_leftovers(const std::string& state_directory) {
  std::vector<std::string> stay;
  const auto directory = state_directory.empty()
                             ? std::unexpected(Error{})
                             : open_state(state_directory, kDirectory, Missing::is_an_error);
  if (!directory) return stay;
  for (const std::string& name :
       read_names(directory->get()).value_or(std::vector<std::string>())) {
    const auto file = held::open_name(directory->get(), name, O_RDONLY | O_NONBLOCK);
    if (!file || ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) continue;  // it lives
    const auto text = sys::read_all(file->get(), kLargest);
    if (!text) continue;
    const Record record = read_notes(*text);
    bool is_done = true;
    for (const Leftover& each : record.leftovers) {
      if (remove_one(each, record.replaces && !record.is_elsewhere)) continue;
      stay.push_back(each.path);
      is_done = false;
    }
    if (is_done) (void)held::remove_file(directory->get(), name);
  }
  return stay;
}

bool remove_contents(int directory) {
  const auto names = read_names(directory);
  if (!names) return false;
  bool all = true;
  for (const std::string& name : *names) {
    if (held::remove_file(directory, name) || held::remove_directory(directory, name)) continue;
    auto inner = held::open_name(directory, name, O_PATH | O_DIRECTORY);
    if (inner) (void)held::set_mode(inner->get(), 0700);  // it may be closed to its owner
    if (inner) inner = held::open_name(directory, name, O_RDONLY | O_DIRECTORY);
    all = inner && remove_contents(inner->get()) && held::remove_directory(directory, name) && all;
  }
  return all;
}

}  // namespace sbx::workspace
