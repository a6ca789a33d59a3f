#include "changes/kept.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/held.hpp"
#include "base/random.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/manifest.hpp"
#include "workspace/last_copy.hpp"
#include "workspace/put.hpp"
#include "workspace/state.hpp"
#include "workspace/tree.hpp"

namespace sbx::changes {
namespace {

constexpr const char* kDirectory = "changes";
constexpr const char* kManifest = "manifest";
constexpr const char* kContents = "contents";
constexpr const char* kApplied = "applied";  // "TIME COUNT\n": what `changes apply` did last
constexpr std::size_t kLongestName = 64;
constexpr std::size_t kLargestManifest = std::size_t{256} << 20;
constexpr int kMostOfOneName = 1000;

std::unexpected<Error> no_such_set(const std::string& name) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "no-such-set",
                    .message = "no changes are kept under the name \"" + name + "\"",
                    .hint = "\"sbx changes list\" names what is kept"});
}

std::unexpected<Error> not_kept(const std::string& what, int errno_value = errno) {
  return fail_errno(ErrorKind::host, "not-kept", "cannot keep the changes: " + what, errno_value);
}

/// What is being written or removed; no name of a set begins with a dot. See is_temporary().
std::string random_name() {
  return ".sbx-" + random_hex();
}

void read_applied(int set, KeptFacts& facts) {
  constexpr std::size_t kLongest = 64;
  const auto file = sys::open_at(set, kApplied, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const auto text = file ? sys::read_all(file->get(), kLongest) : std::unexpected(file.error());
  if (!text) return;
  long long when = 0;
  unsigned long long count = 0;
  if (std::sscanf(text->c_str(), "%lld %llu", &when, &count) != 2) return;
  facts.applied_at = when;
  facts.applied = count;
}

/// Removes a set: a directory of files, and one subdirectory of files.
void remove_set(int store, const std::string& name) {
  const auto set = workspace::open_directory(store, name);
  if (!set) return;
  if (const auto contents = workspace::open_directory(set->get(), kContents))
    for (const std::string& each :
         workspace::read_names(contents->get()).value_or(std::vector<std::string>()))
      (void)held::remove_file(contents->get(), each);
  (void)held::remove_directory(set->get(), kContents);
  for (const std::string& each :
       workspace::read_names(set->get()).value_or(std::vector<std::string>()))
    (void)held::remove_file(set->get(), each);
  (void)held::remove_directory(store, name);  // what is left is looked at next time
}

/// A set that is being written: a locked directory with a temporary name, removed unless it is
/// finished.
class Draft {
 public:
  static Result<Draft> make(int store) {
    Draft draft(store);
    if (!held::make_directory(store, draft.name_, 0700)) return not_kept("no directory for them");
    draft.directory_ = SBX_TRY(workspace::open_directory(store, draft.name_));
    if (::flock(draft.directory_.get(), LOCK_EX | LOCK_NB) != 0) return not_kept("no lock on them");
    if (!held::make_directory(draft.directory_.get(), kContents, 0700))
      return not_kept("no directory for them");
    draft.contents_ = SBX_TRY(workspace::open_directory(draft.directory_.get(), kContents));
    // Before the contents take the last inode.
    draft.manifest_ =
        UniqueFd(::openat(draft.directory_.get(), kManifest,
                          O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!draft.manifest_.valid()) return not_kept("no manifest");
    return draft;
  }
  Draft(Draft&& other) noexcept
      : store_(other.store_),
        name_(std::exchange(other.name_, {})),
        directory_(std::move(other.directory_)),
        contents_(std::move(other.contents_)),
        manifest_(std::move(other.manifest_)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (!name_.empty()) remove_set(store_, name_);
  }

  [[nodiscard]] int contents() const { return contents_.get(); }

  /// May be called again after a failure.
  Status write(const std::string& manifest) {
    if (manifest.size() > kLargestManifest) return not_kept("their list is too long", EFBIG);
    if (::ftruncate(manifest_.get(), 0) != 0 || ::lseek(manifest_.get(), 0, SEEK_SET) != 0)
      return not_kept("no manifest");
    return sys::write_all(manifest_.get(), manifest);
  }

  /// The first free of NAME, NAME-2, NAME-3.
  Result<std::string> publish(const std::string& wanted) {
    for (int i = 1; i <= kMostOfOneName; ++i) {
      const std::string name = i == 1 ? wanted : wanted + "-" + std::to_string(i);
      if (held::rename_to_free({store_, name_}, {store_, name})) {
        name_.clear();
        return name;
      }
      if (errno != EEXIST) return not_kept("no name for them");
    }
    return not_kept("the name \"" + wanted + "\" is taken", EEXIST);
  }

 private:
  explicit Draft(int store) : store_(store), name_(random_name()) {}

  int store_;
  std::string name_;
  UniqueFd directory_;
  UniqueFd contents_;
  UniqueFd manifest_;
};

/// Before it is locked, another sbx may take it for a leftover.
Result<Draft> begin_draft(int store) {
  auto first = Draft::make(store);
  return first ? std::move(first) : Draft::make(store);
}

/// What a change is compared with when it is applied later.
std::optional<Noted> note(const Copy& copy, const Change& change) {
  const workspace::LayerPath place = place_of(copy, change.path);
  struct stat now{};
  const auto directory =
      workspace::open_directory(place.layer->lower.get(), workspace::directory_of(place.path));
  if (!directory || ::fstatat(directory->get(), workspace::name_of(place.path).c_str(), &now,
                              AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  Noted before = workspace::noted(now);
  before.disturbed = changed_on_host(copy, change.path, now);
  return before;
}

/// The directories that hold changes, and those that changed: another one may be in such a place
/// when the set is applied.
std::vector<DirectoryLine> directories_of(const Copy& copy, const std::vector<Change>& changes) {
  std::set<std::string> paths;
  for (const Change& change : changes) {
    paths.insert(workspace::directory_of(change.path));
    if (change.type == FileType::directory) paths.insert(change.path);
  }
  paths.erase(".");
  std::vector<DirectoryLine> found;
  for (const std::string& path : paths) {
    const workspace::LayerPath place = place_of(copy, path);
    if (const auto seen = directory_seen(*place.layer, place.path))
      found.push_back({.path = path, .inode = seen->file.inode, .mode = seen->mode});
  }
  return found;
}

bool has_content(const Change& change) {
  return (change.change == ChangeKind::created || change.change == ChangeKind::modified ||
          change.change == ChangeKind::links) &&
         (change.type == FileType::file || change.type == FileType::link);
}

/// By what they were copied from: the numbers of files with several names.
using KnownFiles = std::map<std::pair<dev_t, ino_t>, std::string>;

/// A further name of a file that is there already.
bool link_content_of(int source, int contents, const std::string& name, KnownFiles& known) {
  struct stat facts{};
  if (::fstat(source, &facts) != 0 || facts.st_nlink < 2) return false;
  const auto [place, is_first] = known.emplace(std::pair(facts.st_dev, facts.st_ino), name);
  const auto first =
      is_first ? std::unexpected(Error{}) : held::open_name(contents, place->second, O_PATH);
  return first && held::link_file(first->get(), contents, name);
}

/// Under a number; the text of a link is the content of a file.
Status keep_content(const Copy& copy, const Change& change, int contents, const std::string& name,
                    KnownFiles& known) {
  constexpr mode_t kPrivate = 0600;
  const workspace::Owner owner{.uid = ::geteuid(), .gid = ::getegid()};
  if (change.type == FileType::file) {
    const UniqueFd source = SBX_TRY(open_content(copy, change));
    if (link_content_of(source.get(), contents, name, known)) return {};
    return workspace::put_file(source.get(), contents, name, kPrivate, owner, {}, copy.copied);
  }
  const std::string text = SBX_TRY(link_content(copy, change));
  const UniqueFd file(::openat(contents, name.c_str(),
                               O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, kPrivate));
  if (!file.valid()) return not_kept("a link");
  Status written = sys::write_all(file.get(), text);
  if (!written) (void)held::remove_file(contents, name);
  return written;
}

Result<std::vector<LayerLine>> lines_of_layers(const Copy& copy) {
  std::vector<LayerLine> lines;
  for (const workspace::Layer& layer : copy.layers) {
    struct stat lower{};
    if (::fstat(layer.lower.get(), &lower) != 0) return not_kept("the workspace");
    lines.push_back({.prefix = layer.prefix, .inode = lower.st_ino});
  }
  return lines;
}

using Losses = std::map<std::string, LostChange>;  // by path

/// What is lost are contents, and deletions of files.
void leave_out(Manifest& manifest, const Losses& losses) {
  std::erase_if(manifest.lines, [&](const Line& line) {
    const bool is_deletion =
        line.change.change == ChangeKind::deleted && line.change.type == FileType::file;
    return (!line.content.empty() || is_deletion) && losses.contains(line.change.path);
  });
  for (const auto& [path, lost] : losses) {
    manifest.links.erase(path);
    manifest.facts.lost.push_back(lost);
  }
}

/// A deletion stays out where what it takes was moved to a name that is lost.
void keep_last_copies(const Copy& copy, const Manifest& manifest, const ChangeSet& changes,
                      Losses& losses) {
  workspace::LastCopies copies(copy);
  std::vector<const Change*> deleted;
  for (const Change& each : changes.changes) {
    if (each.change == ChangeKind::deleted && each.type == FileType::file) deleted.push_back(&each);
    if (losses.contains(each.path) && has_content(each) && each.type == FileType::file)
      copies.add_left_out(each.path, each.bytes, each.change == ChangeKind::created);
  }
  for (const Line& line : manifest.lines)
    if (!line.content.empty()) copies.add_brought_out(line.change.path, line.change.bytes);
  for (const workspace::Left& each : copies.held(deleted))
    losses.try_emplace(each.path, LostChange{.path = each.path,
                                             .why = "its deletion would take what was moved to '" +
                                                    each.why + "', which is lost"});
}

/// Writes a set in the room that there is.
class Keeping {
 public:
  Keeping(const Copy& copy, const ChangeSet& changes, Draft& draft)
      : copy_(copy), changes_(changes), draft_(draft) {}

  Result<Manifest> write(KeptFacts facts) {
    manifest_.facts = std::move(facts);
    manifest_.facts.directory = copy_.directory;
    manifest_.held = changes_.held;
    manifest_.links = changes_.links;
    manifest_.layers = SBX_TRY(lines_of_layers(copy_));
    manifest_.directories = directories_of(copy_, changes_.changes);
    for (const Change& change : changes_.changes) take(change);
    // The contents may have left no room for the list of them.
    for (std::size_t count = 1;; count *= 2) {
      const Manifest finished = SBX_TRY(without_losses());
      Status written = draft_.write(write_manifest(finished));
      if (written) return finished;
      if (!give_up(count, written.error())) return fail(std::move(written).error());
    }
  }

 private:
  void take(const Change& change) {
    Line line{.change = change, .before = note(copy_, change)};
    if (has_content(change)) {
      line.content = std::to_string(number_++);
      if (const Status kept = keep_content(copy_, change, draft_.contents(), line.content, known_);
          !kept)
        return lose(change.path, kept.error());
    }
    manifest_.lines.push_back(std::move(line));
  }

  void lose(const std::string& path, const Error& error) {
    losses_.try_emplace(
        path, LostChange{.path = path, .why = error.text(), .errno_value = error.errno_value});
    if (first_) return;
    first_ = error;
    first_->message = "'" + printable(path) + "': " + error.message;
  }

  /// Errors: host, the first loss, where nothing is left.
  [[nodiscard]] Result<Manifest> without_losses() const {
    Manifest manifest = manifest_;
    Losses losses = losses_;
    if (!losses.empty()) keep_last_copies(copy_, manifest, changes_, losses);
    leave_out(manifest, losses);
    if (manifest.lines.empty() && first_) return fail(*first_);
    manifest.facts.count = manifest.lines.size();
    for (const Line& line : manifest.lines)
      if (!line.content.empty()) manifest.facts.bytes += line.change.bytes;
    return manifest;
  }

  /// The largest contents go. False: there are none.
  bool give_up(std::size_t count, const Error& why) {
    std::vector<Line*> lines;
    for (Line& line : manifest_.lines)
      if (!line.content.empty() && !losses_.contains(line.change.path)) lines.push_back(&line);
    std::ranges::stable_sort(lines, std::ranges::greater(),
                             [](const Line* line) { return line->change.bytes; });
    lines.resize(std::min(lines.size(), count));
    for (Line* const line : lines) {
      (void)held::remove_file(draft_.contents(), line->content);
      lose(line->change.path, why);
    }
    return !lines.empty();
  }

  const Copy& copy_;
  const ChangeSet& changes_;
  Draft& draft_;
  Manifest manifest_;
  std::uint64_t number_ = 0;
  KnownFiles known_;
  Losses losses_;
  std::optional<Error> first_;
};

Result<Manifest> read_manifest(int set, const std::string& name, Part part) {
  const UniqueFd file = SBX_TRY(workspace::open_file(set, kManifest));
  const std::string text = SBX_TRY(sys::read_all(file.get(), kLargestManifest));
  return parse_manifest(name, text, part);
}

/// Opens the directory of a layer, if its inode is the same as when the set was made.
Result<UniqueFd> open_lower(const std::string& path, ino_t inode, const std::string& set) {
  const std::string next = "then: sbx changes apply " + set;
  auto directory = sys::open_resolved(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                                      RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!directory)
    return fail(Error{.kind = ErrorKind::host,
                      .code = "workspace-gone",
                      .message = "the changes were made in '" + path + "', which can't be opened",
                      .errno_value = directory.error().errno_value,
                      .hint = "put it back, " + next});
  struct stat facts{};
  if (::fstat(directory->get(), &facts) != 0 || facts.st_ino != inode)
    return fail(
        Error{.kind = ErrorKind::host,
              .code = "workspace-replaced",
              .message = "'" + path + "' is not the directory that the changes were made in",
              .hint = "it was replaced by another one of that name: put it back, " + next});
  return directory;
}

}  // namespace

Status check_set_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool good = !name.empty() && name.size() <= kLongestName && plain(name.front()) &&
                    std::ranges::all_of(
                        name, [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
  if (good) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-set-name",
                    .message = "\"" + std::string(name) + "\" can't be the name of a change set",
                    .hint = "letters, digits, '.', '_' and '-', a letter or digit first, 64 at "
                            "most; for example cleanup-1"});
}

Result<Store> Store::open_or_make(const std::string& state_directory) {
  return Store(
      SBX_TRY(workspace::open_state(state_directory, kDirectory, workspace::Missing::is_made)));
}

Result<Store> Store::open(const std::string& state_directory) {
  auto directory =
      workspace::open_state(state_directory, kDirectory, workspace::Missing::is_an_error);
  if (directory) return Store(std::move(*directory));
  if (directory.error().errno_value == ENOENT) return Store(UniqueFd());
  return std::unexpected(directory.error());
}

bool Store::has(const std::string& name) const {
  return directory_.valid() &&
         ::faccessat(directory_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<KeptFacts> Store::keep(KeptFacts facts, const Copy& copy, const ChangeSet& changes) const {
  remove_leftovers();
  const CopyingEnds ends(copy.copied);
  const std::string wanted = facts.name;
  Draft draft = SBX_TRY(begin_draft(directory_.get()));
  Manifest manifest = SBX_TRY(Keeping(copy, changes, draft).write(std::move(facts)));
  manifest.facts.name = SBX_TRY(draft.publish(wanted));
  return std::move(manifest.facts);
}

Status Store::replace_notes(const std::string& name, const Copy& copy, const Notes& notes) const {
  Draft draft = SBX_TRY(begin_draft(directory_.get()));
  Manifest manifest{.facts = {.directory = copy.directory}};
  manifest.layers = SBX_TRY(lines_of_layers(copy));
  for (const auto& [path, facts] : notes) {
    Line& line = manifest.lines.emplace_back();
    line.change = {.path = path, .change = ChangeKind::deleted, .type = FileType::file};
    if (!facts) continue;
    line.change.change = ChangeKind::mode;
    line.change.type = workspace::type_of(facts->st_mode);
    line.change.mode = facts->st_mode & 07777;
    line.before = workspace::noted(*facts);
  }
  SBX_TRY(draft.write(write_manifest(manifest)));
  if (has(name)) SBX_TRY(drop(name));
  SBX_TRY(draft.publish(name));
  return {};
}

Result<UniqueFd> Store::open_set(const std::string& name) const {
  SBX_TRY(check_set_name(name));
  if (!has(name)) return no_such_set(name);
  return workspace::open_directory(directory_.get(), name);
}

Result<std::vector<KeptFacts>> Store::list() const {
  std::vector<KeptFacts> sets;
  if (!directory_.valid()) return sets;
  remove_leftovers();
  for (const std::string& name : SBX_TRY(workspace::read_names(directory_.get()))) {
    if (!check_set_name(name)) continue;
    KeptFacts& facts = sets.emplace_back();
    const auto set = workspace::open_directory(directory_.get(), name);
    auto manifest =
        set ? read_manifest(set->get(), name, Part::facts) : std::unexpected(set.error());
    if (manifest) {
      facts = std::move(manifest->facts);
      read_applied(set->get(), facts);
    } else {
      facts.outcome = manifest.error().text();
    }
    facts.name = name;
  }
  std::ranges::stable_sort(sets, {}, &KeptFacts::made);
  return sets;
}

Result<Kept> Store::load(const std::string& name) const {
  const UniqueFd set = SBX_TRY(open_set(name));
  Manifest manifest = SBX_TRY(read_manifest(set.get(), name, Part::everything));
  Kept kept{.facts = std::move(manifest.facts)};
  kept.facts.name = name;
  read_applied(set.get(), kept.facts);
  kept.copy.directory = kept.facts.directory;
  kept.copy.is_overlay = true;
  for (LayerLine& layer : manifest.layers)
    kept.copy.layers.push_back({.prefix = std::move(layer.prefix), .inode = layer.inode});
  kept.directories = std::move(manifest.directories);
  auto stored = std::make_unique<workspace::Stored>();
  stored->contents = SBX_TRY(workspace::open_directory(set.get(), kContents));
  // A shared lock: drop() does not wait, but reports that the set is in use.
  if (::flock(stored->contents.get(), LOCK_SH | LOCK_NB) != 0) return no_such_set(name);
  for (Line& line : manifest.lines) {
    if (!line.content.empty()) stored->content_of[line.change.path] = std::move(line.content);
    if (line.before) stored->before[line.change.path] = *line.before;
    kept.changes.changes.push_back(std::move(line.change));
  }
  std::ranges::stable_sort(kept.changes.changes, {}, &Change::path);
  kept.changes.held = std::move(manifest.held);
  kept.changes.links = std::move(manifest.links);
  for (const LostChange& each : kept.facts.lost)
    kept.changes.hidden.push_back(
        {.path = each.path, .why = "not in the set: " + each.why, .holds = true});
  kept.copy.stored = std::move(stored);
  return kept;
}

Status Store::note_applied(const std::string& name, std::int64_t when, std::uint64_t count) const {
  const UniqueFd set = SBX_TRY(open_set(name));
  const std::string temporary = random_name();
  const UniqueFd file(::openat(set.get(), temporary.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return not_kept("no file for what was applied");
  Status written = sys::write_all(file.get(), fmt::format("{} {}\n", when, count));
  if (written && !held::rename({set.get(), temporary}, {set.get(), kApplied}))
    written = not_kept("no file for what was applied");
  if (!written) (void)held::remove_file(set.get(), temporary);
  return written;
}

Status Store::drop(const std::string& name) const {
  const UniqueFd set = SBX_TRY(open_set(name));
  const auto contents = workspace::open_directory(set.get(), kContents);
  if (contents && ::flock(contents->get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Error{.kind = ErrorKind::host,
                      .code = "set-in-use",
                      .message = "the change set \"" + name + "\" is being applied or shown"});
  // First out of sight: a set is there as a whole or not at all.
  const std::string unfinished = random_name();
  if (!held::rename({directory_.get(), name}, {directory_.get(), unfinished}))
    return fail_errno(ErrorKind::host, "not-dropped", "cannot drop \"" + name + "\"");
  remove_set(directory_.get(), unfinished);
  return {};
}

/// A draft that is written is locked; one that is not was left by a sbx that was killed.
void Store::remove_leftovers() const {
  for (const std::string& name :
       workspace::read_names(directory_.get()).value_or(std::vector<std::string>())) {
    if (!workspace::is_temporary(name)) continue;
    const auto draft = workspace::open_directory(directory_.get(), name);
    if (draft && ::flock(draft->get(), LOCK_EX | LOCK_NB) == 0) remove_set(directory_.get(), name);
  }
}

Status open_directories(Kept& kept) {
  std::map<const workspace::Layer*, std::shared_ptr<plan::SeenTree>> trees;
  for (workspace::Layer& layer : kept.copy.layers)
    layer.lower = SBX_TRY(open_lower(
        layer.prefix == "." ? kept.facts.directory : kept.facts.directory + "/" + layer.prefix,
        layer.inode, kept.facts.name));
  for (const DirectoryLine& line : kept.directories) {
    const workspace::LayerPath place = place_of(kept.copy, line.path);
    struct stat facts{};
    if (::fstat(place.layer->lower.get(), &facts) != 0) return not_kept("the workspace");
    auto& tree = trees[place.layer];
    if (!tree) tree = std::make_shared<plan::SeenTree>();
    tree->add_directory(place.path, {.device = facts.st_dev, .inode = line.inode}, line.mode);
  }
  for (workspace::Layer& layer : kept.copy.layers) layer.seen = trees[&layer];
  return {};
}

}  // namespace sbx::changes
