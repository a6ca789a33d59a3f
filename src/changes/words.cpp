#include "changes/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include <sbx/units.hpp>

#include "base/text.hpp"
#include "changes/diff.hpp"
#include "plan/files/pattern.hpp"
#include "policy/keys.hpp"
#include "workspace/lost.hpp"
#include "workspace/names.hpp"
#include "workspace/tree.hpp"

namespace sbx::changes {
namespace {

constexpr std::size_t kNamesShown = 200;  // of each kind of change
constexpr std::size_t kLeftShown = 20;
constexpr std::size_t kLinesOfOne = 200;  // of one file's difference
constexpr std::size_t kLinesOfNew = 40;   // of one created file: many may be made at once
constexpr std::size_t kLinesOfAll = 2000;
constexpr std::size_t kFewInDirectory = 20;  // in a new directory: shown one by one

std::string plural(std::uint64_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// A line of a text: tabs stay, they steer nothing.
std::string visible(std::string_view line) {
  std::string text;
  while (true) {
    const auto tab = line.find('\t');
    text += printable(line.substr(0, tab));
    if (tab == std::string_view::npos) return text;
    text += '\t';
    line = line.substr(tab + 1);
  }
}

std::string with_slash(const Change& change) {
  const std::string name = printable(change.path);
  return change.type == FileType::directory ? name + "/" : name;
}

struct Tally {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// One directory with everything in it, or one name.
struct Group {
  const Change* change = nullptr;
  Tally inside;
  std::vector<const Change*> members;
};

/// Changes of one kind; names in a directory of the same kind are counted there. Sorted by path, so
/// a directory comes before what is in it.
std::vector<Group> grouped(const std::vector<Change>& changes, ChangeKind kind) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t, std::less<>> directories;
  for (const Change& change : changes) {
    if (change.change != kind) continue;
    std::size_t home = groups.size();
    for (auto slash = change.path.find('/'); slash != std::string::npos;
         slash = change.path.find('/', slash + 1)) {
      const auto found = directories.find(std::string_view(change.path).substr(0, slash));
      if (found == directories.end()) continue;
      home = found->second;
      break;
    }
    if (home < groups.size()) {
      Group& group = groups[home];
      group.inside.files += change.type == FileType::directory ? 0 : 1;
      group.inside.bytes += change.bytes;
      if (group.members.size() <= kFewInDirectory) group.members.push_back(&change);
      continue;
    }
    if (change.type == FileType::directory) directories.emplace(change.path, groups.size());
    groups.push_back({.change = &change});
  }
  return groups;
}

/// Files that every git command rewrites and no user reads: objects, logs, the index. Not hooks,
/// settings and branches, which control git.
bool is_git_bookkeeping(const Change& change) {
  constexpr auto kDirectories = std::to_array<std::string_view>({"objects", "logs"});
  constexpr auto kFiles =
      std::to_array<std::string_view>({"index", "COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD"});
  constexpr std::string_view kGit = ".git/";
  const std::string_view path = change.path;
  const auto at = path.starts_with(kGit) ? 0 : path.find("/.git/");
  if (at == std::string_view::npos) return false;
  const std::string_view name = path.substr(at + kGit.size() + (at == 0 ? 0 : 1));
  return std::ranges::find(kFiles, name) != kFiles.end() ||
         std::ranges::find(kDirectories, name.substr(0, name.find('/'))) != kDirectories.end();
}

std::string bookkeeping_words(const std::vector<Change>& changes, const std::string& rest) {
  if (changes.empty()) return {};
  std::uint64_t bytes = 0;
  for (const Change& change : changes)
    bytes += change.change == ChangeKind::deleted ? 0 : change.bytes;
  return fmt::format("  git       {} of objects, logs and index, {} ({} has them all)\n",
                     plural(changes.size(), "change"), describe(Bytes{bytes}), rest);
}

class Listing {
 public:
  Listing(const workspace::Copy& copy, const Paint& paint, std::string rest,
          const std::set<std::string>& stale)
      : copy_(copy), paint_(paint), rest_(std::move(rest)), stale_(stale) {}

  void deletions(const std::vector<Change>& changes) {
    begin();
    for (const Group& group : grouped(changes, ChangeKind::deleted)) {
      if (is_full()) continue;
      line(paint_.red("deleted "), *group.change, size_of(group));
    }
    end();
  }

  void modifications(const std::vector<Change>& changes, Texts texts) {
    begin();
    for (const Change& change : changes) {
      if (change.change != ChangeKind::modified || is_full()) continue;
      if (stale_.contains(change.path)) {  // what it was is gone: nothing is compared with
        line(paint_.bold("modified"), change, created_size(change) + stale_words(change));
        continue;
      }
      const Sides sides = sides_of(copy_, change);
      line(paint_.bold("modified"), change, modified_size(change, sides));
      if (texts == Texts::shown && sides.readable) difference(sides);
    }
    end();
  }

  void creations(const std::vector<Change>& changes, Texts texts) {
    const auto created = [&](const Change& change) {
      line(paint_.green("created "), change, created_size(change));
      if (texts == Texts::shown && lines_ < kLinesOfAll)
        lines_of(
            added_lines(created_text(copy_, change), std::min(kLinesOfNew, kLinesOfAll - lines_)));
    };
    begin();
    for (const Group& group : grouped(changes, ChangeKind::created)) {
      if (is_full()) continue;
      if (group.members.size() > kFewInDirectory) {
        line(paint_.green("created "), *group.change, size_of(group));
        continue;
      }
      created(*group.change);
      for (const Change* member : group.members)
        if (!is_full()) created(*member);
    }
    end();
  }

  void modes(const std::vector<Change>& changes) {
    begin();
    for (const Change& change : changes)
      if (change.change == ChangeKind::mode && !is_full())
        line("mode    ", change, fmt::format("now {:04o}", change.mode));
    end();
  }

  void links(const std::vector<Change>& changes) {
    begin();
    for (const Change& change : changes)
      if (change.change == ChangeKind::links && !is_full())
        line("links   ", change, "the same content; its other names are not those of before");
    end();
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void begin() { shown_ = left_out_ = 0; }
  bool is_full() {
    if (shown_ < kNamesShown) return false;
    ++left_out_;
    return true;
  }
  void end() {
    if (left_out_ > 0) text_ += fmt::format("  … and {} more: {} has them all\n", left_out_, rest_);
  }

  void line(const std::string& what, const Change& change, const std::string& about) {
    ++shown_;
    const std::string target = link_text(copy_, change);
    text_ += fmt::format("  {}  {}{}{}\n", what, with_slash(change),
                         target.empty() ? "" : " -> " + printable(target),
                         about.empty() ? "" : "  (" + about + ")");
  }

  static std::string size_of(const Group& group) {
    if (group.change->type == FileType::directory)
      return plural(group.inside.files, "file") + ", " + describe(Bytes{group.inside.bytes});
    return created_size(*group.change);
  }
  static std::string created_size(const Change& change) {
    if (change.type == FileType::file) return describe(Bytes{change.bytes});
    if (change.type == FileType::directory || change.type == FileType::link) return {};
    return workspace::describe(change.type);
  }
  static std::string stale_words(const Change& change) {
    return std::string(created_size(change).empty() ? "" : "; ") + "changed on the host since";
  }
  static std::string modified_size(const Change& change, const Sides& sides) {
    if (change.type != FileType::file) return workspace::describe(change.type);
    return fmt::format("{}, was {}", describe(Bytes{change.bytes}),
                       describe(Bytes{sides.bytes_before}));
  }

  void difference(const Sides& sides) {
    if (lines_ >= kLinesOfAll) return;
    lines_of(unified_diff(sides.before, sides.after, std::min(kLinesOfOne, kLinesOfAll - lines_)));
  }

  void lines_of(const std::vector<std::string>& lines) {
    for (const std::string& each : lines) {
      const std::string shown = visible(each);
      text_ += "    ";
      text_ += each.starts_with('-')    ? paint_.red(shown)
               : each.starts_with('+')  ? paint_.green(shown)
               : each.starts_with("@@") ? paint_.blue(shown)
                                        : shown;
      text_ += '\n';
      ++lines_;
    }
  }

  const workspace::Copy& copy_;
  const Paint& paint_;
  std::string rest_;
  const std::set<std::string>& stale_;
  std::string text_;
  std::size_t shown_ = 0;
  std::size_t left_out_ = 0;
  std::size_t lines_ = 0;
};

void append_list(std::string& text, const char* what, const std::vector<workspace::Left>& list) {
  for (std::size_t i = 0; i < list.size() && i < kLeftShown; ++i)
    text +=
        fmt::format("sbx: {}{}: {}\n", list[i].partly ? std::string() : fmt::format("{}: ", what),
                    printable(list[i].path), printable(list[i].why));
  if (list.size() > kLeftShown) text += fmt::format("sbx: and {} more\n", list.size() - kLeftShown);
}

std::string suggestion(const workspace::Collected& collected,
                       const std::vector<std::string>& patterns) {
  std::vector<std::string_view> names(collected.changed.begin(), collected.changed.end());
  for (const workspace::Left& each : collected.left) names.push_back(each.path);
  for (const std::string& pattern : patterns) {
    const bool has_some = std::ranges::any_of(collected.files, [&](const Change& file) {
      return workspace::matches(pattern, file.path);
    });
    const std::string meant = has_some ? std::string() : meant_pattern(pattern, names);
    if (!meant.empty())
      return fmt::format("; did you mean --collect {}?", printable(shell_word(meant)));
  }
  return {};
}

/// Without a pattern, only new files are copied out.
std::string changed_words(const workspace::Collected& collected,
                          const std::vector<std::string>& patterns) {
  constexpr std::size_t kShown = 3;
  if (collected.changed_count == 0) return {};
  std::string names;
  for (std::size_t i = 0; i < std::min(collected.changed.size(), kShown); ++i)
    names += (i > 0 ? ", " : "") + shortened(printable(collected.changed[i]), 100);
  if (collected.changed_count > kShown) names += ", ...";
  return fmt::format(
      "sbx: {} that existed before changed and {} not copied: {}; --collect {} copies {}{}\n",
      plural(collected.changed_count, "file"), collected.changed_count == 1 ? "was" : "were", names,
      printable(shell_word(collected.changed.front())),
      collected.changed_count == 1 ? "it" : "the first", suggestion(collected, patterns));
}

/// Names of one directory with one reason are one line from the fourth on: git init makes 13 sample
/// hooks.
std::string guarded_lines(const std::vector<workspace::Left>& guarded) {
  constexpr std::size_t kApart = 3;
  std::map<std::pair<std::string, std::string>, std::vector<const workspace::Left*>> groups;
  for (const workspace::Left& each : guarded)
    groups[{workspace::directory_of(each.path), std::string(each.guard)}].push_back(&each);
  std::string text;
  std::size_t lines = 0;
  std::size_t shown = 0;
  for (const auto& [key, names] : groups) {
    const bool is_folded = names.size() > kApart && !key.first.empty();
    if (is_folded && lines++ < kLeftShown) {
      text += fmt::format("  {} and {} more there ({})\n", printable(names.front()->path),
                          names.size() - 1, key.second);
      shown += names.size();
    }
    for (const workspace::Left* each : is_folded ? std::vector<const workspace::Left*>() : names)
      if (lines++ < kLeftShown) {
        text += fmt::format("  {} ({})\n", printable(each->path), key.second);
        ++shown;
      }
  }
  if (shown < guarded.size()) text += fmt::format("  and {} more\n", guarded.size() - shown);
  return text;
}

/// A directory that could not be looked into, and the kernel's answer. A tree that is nested too
/// deep to be opened has a path of several pages.
std::string unread_words(const workspace::Left& unread) {
  constexpr std::size_t kShown = 100;
  const std::string& path = unread.path;
  const auto answer = unread.why.rfind(": ");
  return printable(path.size() <= 2 * kShown
                       ? path
                       : path.substr(0, kShown) + " ... " + path.substr(path.size() - kShown)) +
         ": " + (answer == std::string::npos ? unread.why : unread.why.substr(answer + 2));
}

}  // namespace

std::string meant_pattern(const std::string& pattern, const std::vector<std::string_view>& names) {
  const std::string below = "**/" + pattern;
  for (const std::string_view name : names) {
    if (workspace::matches(below, name)) return plan::is_wild(pattern) ? below : std::string(name);
    if (pattern.starts_with('/') && pattern.ends_with("/" + std::string(name)))
      return std::string(name);
  }
  return std::string(policy::nearest(pattern, names));
}

std::string tally_words(const std::vector<Change>& changes) {
  constexpr std::array<const char*, 5> kNames = {"created", "modified", "deleted", "mode", "links"};
  std::array<std::uint64_t, kNames.size()> counts{};
  for (const Change& change : changes) ++counts[static_cast<std::size_t>(change.change)];
  std::string text = plural(changes.size(), "change");
  const char* between = ": ";
  for (const ChangeKind kind : {ChangeKind::deleted, ChangeKind::modified, ChangeKind::created,
                                ChangeKind::mode, ChangeKind::links}) {
    const auto at = static_cast<std::size_t>(kind);
    if (counts[at] == 0) continue;
    text += fmt::format("{}{} {}", between, counts[at], kNames[at]);
    between = ", ";
  }
  return text;
}

std::string listing_words(const workspace::Copy& copy, const workspace::ChangeSet& changes,
                          Texts texts, const Paint& paint, const std::string& rest,
                          const std::set<std::string>& stale) {
  std::vector<Change> shown;
  std::vector<Change> bookkeeping;
  std::ranges::partition_copy(changes.changes, std::back_inserter(bookkeeping),
                              std::back_inserter(shown), is_git_bookkeeping);
  Listing listing(copy, paint, rest, stale);
  listing.deletions(shown);
  listing.modifications(shown, texts);
  listing.creations(shown, texts);
  listing.modes(shown);
  listing.links(shown);
  return listing.take() + bookkeeping_words(bookkeeping, rest);
}

std::string incomplete_words(const workspace::ChangeSet& changes) {
  const std::string begin = "the list of changes is not complete: ";
  if (!changes.unread.empty()) return begin + unread_words(changes.unread.front());
  if (changes.left_out == 0) return {};
  constexpr workspace::MostFound kMost;
  return begin + fmt::format("at least {} are beyond {} changes, or beyond {} of names",
                             changes.left_out, kMost.changes, describe(Bytes{kMost.name_bytes}));
}

std::string changes_words(const workspace::Copy& copy, const workspace::ChangeSet& changes,
                          Texts texts, const Paint& paint, const std::string& rest) {
  std::string text =
      fmt::format("sbx: {} in {}\n", tally_words(changes.changes), printable(copy.directory)) +
      listing_words(copy, changes, texts, paint, rest);
  if (changes.left_out > 0)
    text +=
        fmt::format("sbx: at least {} more changes are not listed anywhere\n", changes.left_out);
  append_list(text, "cannot be read", changes.unread);
  return text;
}

std::string collected_words(const workspace::Collected& collected,
                            const std::vector<std::string>& patterns,
                            const std::string& directory) {
  const std::string changed = changed_words(collected, patterns);
  if (collected.files.empty() && collected.left.empty() && collected.unmatched == 0)
    return fmt::format(
               "sbx: nothing to copy to {}: {} in the working directory; what is elsewhere, as in "
               "/tmp, is not copied\n",
               shortened(printable(directory), 100),
               changed.empty() ? "no file is new or has other content" : "no file is new") +
           changed;
  std::uint64_t bytes = 0;
  for (const Change& file : collected.files) bytes += file.bytes;
  std::string text =
      fmt::format("sbx: copied {}, {}, to {}\n", plural(collected.files.size(), "file"),
                  describe(Bytes{bytes}), shortened(printable(directory), 200));
  append_list(text, "not copied", collected.left);
  if (collected.unmatched > 0) {
    std::string list;
    for (const std::string& each : patterns) list += (list.empty() ? "" : " ") + printable(each);
    text += fmt::format("sbx: {} created and not matched by {}; --collect GLOB chooses others{}\n",
                        plural(collected.unmatched, "file"), shortened(list, 200),
                        suggestion(collected, patterns));
  }
  return collected.files.empty() ? text + changed : text;
}

std::string uncollected_words(const workspace::Collected& collected,
                              const std::vector<std::string>& typed) {
  if (collected.files.empty()) return {};
  std::string text;
  for (const std::string& each : collected.unmet)
    if (std::ranges::find(typed, each) != typed.end())
      text += fmt::format("sbx: no new or changed file matches --collect {}\n",
                          shortened(printable(shell_word(each)), 200));
  return text;
}

std::string changed_and_lost_words(const workspace::Collected& collected) {
  constexpr std::size_t kShown = 3;
  if (collected.files.empty()) return {};
  std::string names;
  std::size_t count = 0;
  for (const std::string& each : collected.changed)
    if (workspace::may_be_missed(each) && ++count <= kShown)
      names += (names.empty() ? "" : ", ") + shortened(printable(each), 100);
  if (count == 0) return {};
  return fmt::format(
      "sbx: {} that existed before changed and {} gone with the sandbox: {}{}; --apply keeps {}\n",
      count == 1 ? "a file" : "files", count == 1 ? "is" : "are", names,
      count > kShown ? ", ..." : "", count == 1 ? "it" : "them");
}

std::string lost_by_cells_words(const std::vector<Change>& changes, bool are_copied,
                                const std::string& notebook) {
  constexpr std::size_t kShown = 3;
  std::string names;
  std::size_t count = 0;
  bool is_new = false;
  for (const Change& each : changes) {
    const bool is_created = each.change == ChangeKind::created;
    if (each.type != FileType::file || each.change == ChangeKind::deleted ||
        (is_created && are_copied) || !workspace::may_be_missed(each.path))
      continue;
    is_new |= is_created;
    if (++count <= kShown) names += (names.empty() ? "" : ", ") + printable(each.path);
  }
  if (count == 0) return {};
  const char* const what = is_new       ? "files were created or changed, and that is"
                           : count == 1 ? "a file was changed and the change is"
                                        : "files were changed and the changes are";
  const std::string cure = is_new ? "--out DIR copies new files"
                                  : "to keep changes: sbx session eval NAME " +
                                        shell_word(notebook) + ", then sbx session apply NAME";
  return fmt::format("sbx: {} gone with the sandbox: {}{}; {}\n", what, names,
                     count > kShown ? ", ..." : "", cure);
}

std::string lost_words(const std::vector<LostChange>& lost, const std::string& state_directory) {
  std::vector<workspace::Left> left;
  for (const LostChange& each : lost) left.push_back({.path = each.path, .why = each.why});
  std::string text;
  append_list(text, "not kept", left);
  if (std::ranges::any_of(lost, [](const LostChange& each) {
        return each.errno_value == ENOSPC || each.errno_value == EDQUOT;
      }))
    text += fmt::format("sbx: '{}' is full: \"sbx changes drop NAME\" makes room there\n",
                        printable(state_directory));
  return text;
}

std::string applied_words(const workspace::Applied& applied, const std::string& directory) {
  const std::size_t made = applied.done.size() - applied.already;
  const bool has_rest = !applied.conflicts.empty() || !applied.left.empty();
  std::string text =
      made == 0 && applied.already > 0 && !has_rest
          ? fmt::format("sbx: nothing was left to apply: {} has all of it already\n",
                        printable(directory))
          : fmt::format("sbx: applied {} to {}{}\n", plural(made, "change"), printable(directory),
                        applied.already == 0
                            ? std::string()
                            : fmt::format(", which had {} already", applied.already));
  for (const std::string& path : applied.leftovers)
    text += fmt::format("sbx: an application that was killed left new content in {}\n",
                        printable(path));
  return text + conflict_words(applied.conflicts) + left_words(applied.left);
}

std::string hazard_words(const std::vector<workspace::Left>& hazards) {
  std::string text;
  append_list(text, "look at", hazards);
  return text;
}

std::string conflict_words(const std::vector<workspace::Left>& conflicts) {
  std::string text;
  std::vector<workspace::Left> causes;
  for (const workspace::Left& each : conflicts)
    if (each.why != workspace::kHeldBack) causes.push_back(each);
  append_list(text, "conflict", causes);
  if (const std::size_t held = conflicts.size() - causes.size(); held > 0)
    text += fmt::format("sbx: conflict: {} in .git: {}\n", plural(held, "more change"),
                        workspace::kHeldBack);
  return text;
}

std::string conflict_help(const std::string& command) {
  return fmt::format("  help: what the host has stays; {} shows how the other differs\n", command);
}

/// Protected names stand apart: nothing failed, and naming one applies it.
std::string left_words(const std::vector<workspace::Left>& left) {
  std::vector<workspace::Left> others;
  std::vector<workspace::Left> guarded;
  for (const workspace::Left& each : left) (each.guard.empty() ? others : guarded).push_back(each);
  std::string text;
  append_list(text, "not applied", others);
  if (guarded.empty()) return text;
  text +=
      "sbx: not applied: names that programs of the host run or trust by themselves; to apply one, "
      "name it:\n";
  return text + guarded_lines(guarded);
}

}  // namespace sbx::changes
