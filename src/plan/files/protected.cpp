#include "plan/files/protected.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace sbx::plan {
namespace {

constexpr std::string_view kOfRebase =
    "git goes on with the commands in it: first inside, git rebase --abort or --continue";

using std::string_view;

/// A name in lower case; a '*' at one of its ends stands for any text.
struct GitName {
  string_view name;
  string_view why;
};

/// A name that a program of the host runs, or takes from it what to run, without being told to.
struct ProtectedName {
  string_view name;
  string_view why;
  string_view directory{};  ///< the name of the directory that holds it; empty: any
};

/// What git only reads and writes. Everything else in a .git is protected: its versions add names
/// that lead it elsewhere or hold commands.
constexpr auto kGitData = std::to_array<GitName>({
    {"objects", "content"},
    {"refs", "branches and tags"},
    {"packed-refs", "the same in one file"},
    {"logs", "what refs were"},
    {"index", "the list of files"},
    {"sharedindex.*", "a part of the index"},
    {"head", "the branch"},
    {"*_head", "a commit: of a merge, a fetch, a reset"},
    {"merge_*", "the state of a merge: commits and a message"},
    {"auto_merge", "the tree of a merge"},
    {"commit_editmsg", "a message"},
    {"shallow", "commits without parents"},
    {"description", "a title"},
});

/// Reasons for names of a .git; the last holds for every other one.
constexpr auto kOfGit = std::to_array<GitName>({
    {"hooks", "git runs what is in it"},
    {"config*", "git runs commands that it names"},
    {"commondir", "git takes settings and hooks from where it leads"},
    {"gitdir", "it leads git to another directory"},
    {"modules", "it holds settings and hooks of submodules"},
    {"branches", "git takes addresses from what is in it"},
    {"remotes", "git takes addresses from what is in it"},
    {"rebase-merge", kOfRebase},
    {"rebase-apply", kOfRebase},
    {"sequencer", "git goes on with what is in it: first inside, git cherry-pick --abort"},
    {"*", "git may run or follow it"},
});

/// Names that git takes what to do from, also where a path looks like data: a submodule may be
/// called "x/objects".
constexpr auto kNeverInModules = std::to_array<string_view>(
    {"hooks", "config", "config.worktree", "commondir", "gitdir", "attributes", "grafts"});

constexpr auto kRules = std::to_array<ProtectedName>({
    // start-up files of shells, and the files that they read
    {".envrc", "direnv runs it"},
    {".bashrc", "bash runs it"},
    {".bash_profile", "bash runs it"},
    {".bash_login", "bash runs it"},
    {".bash_logout", "bash runs it"},
    {".bash_aliases", "bash runs it"},
    {".profile", "shells run it"},
    {".zshrc", "zsh runs it"},
    {".zshenv", "zsh runs it"},
    {".zprofile", "zsh runs it"},
    {".zlogin", "zsh runs it"},
    {".zlogout", "zsh runs it"},
    {".login", "csh runs it"},
    {".cshrc", "csh runs it"},
    {".tcshrc", "tcsh runs it"},
    {".kshrc", "ksh runs it"},
    {".mkshrc", "mksh runs it"},
    {".inputrc", "shells bind keys to what it says"},
    {".xprofile", "a login runs it"},
    {".xsession", "a login runs it"},
    {".xinitrc", "startx runs it"},
    {".pam_environment", "a login sets its variables"},
    {"fish", "fish runs what is in it", ".config"},
    // version control
    {".gitconfig", "git runs commands that it names"},
    {"git", "git runs commands that its config names", ".config"},
    {"hgrc*", "hg runs hooks and aliases that it names", ".hg"},
    {"sharedpath", "hg takes settings from where it leads", ".hg"},
    {".husky", "git runs hooks from it"},
    {".githooks", "git runs hooks from it"},
    {".pre-commit-config.yaml", "git runs hooks that it names"},
    {"lefthook.*", "git runs hooks that it names"},
    {".lefthook.*", "git runs hooks that it names"},
    {"lefthook-local.*", "git runs hooks that it names"},
    {".lefthook-local.*", "git runs hooks that it names"},
    {"workflows", "a push runs them, with the repository's secrets", ".github"},
    // package managers and version managers
    {".yarnrc", "yarn runs the file that it names"},
    {".yarnrc.yml", "yarn runs the file that it names"},
    {".npmrc", "npm runs the shell and git that it names"},
    {".pnpmfile.*", "pnpm runs it"},
    {"config*", "cargo runs the compiler and linker that it names", ".cargo"},
    {"mise.toml", "mise runs its hooks"},
    {"mise.local.toml", "mise runs its hooks"},
    {".mise.toml", "mise runs its hooks"},
    {".mise.local.toml", "mise runs its hooks"},
    {".mise", "mise runs its hooks"},
    {"config*.toml", "mise runs its hooks", "mise"},
    {"conf.d", "mise runs its hooks", "mise"},
    // interpreters and debuggers that read it in the directory where they start
    {".rprofile", "R runs it"},
    {".renviron", "R sets its variables"},
    {".rdata", "R loads it, and runs its .First"},
    {".octaverc", "octave runs it"},
    {".perldb", "perl's debugger runs it"},
    {".irbrc", "irb runs it"},
    {".pryrc", "pry runs it"},
    {".ghci", "ghci runs it"},
    {".ocamlinit", "ocaml runs it"},
    {".iex.exs", "iex runs it"},
    {".pdbrc", "pdb runs it"},
    {".gdbinit", "gdb runs it"},
    {".lldbinit", "lldb runs it"},
    // editors
    {".vscode", "an editor runs its tasks and the programs that its settings name"},
    {"*.code-workspace", "an editor runs its tasks"},
    {".devcontainer", "an editor runs its commands on the host"},
    {".devcontainer.json", "an editor runs its commands on the host"},
    {".idea", "an editor runs its tasks"},
    {".zed", "an editor runs its tasks"},
    {".fleet", "an editor runs its tasks"},
    {"*.sublime-project", "an editor runs its build systems"},
    {".vimrc", "vim runs it"},
    {".exrc", "vi runs it"},
    {".vim", "vim runs what is in it"},
    {".nvimrc", "nvim runs it"},
    {".nvim.lua", "nvim runs it"},
    {".dir-locals*.el", "emacs sets its variables"},
    {".emacs.d", "emacs runs what is in it"},
    // agents
    {".mcp.json", "an agent starts the servers that it names"},
    {".claude", "an agent runs its hooks"},
    {".cursor", "an agent starts the servers that it names"},
    {".codex", "an agent starts the servers that it names"},
    {".gemini", "an agent starts the servers that it names"},
    {".opencode", "an agent runs its plugins"},
    {"opencode.json", "an agent starts the servers that it names"},
    {"opencode.jsonc", "an agent starts the servers that it names"},
    {".windsurf", "an agent starts the servers that it names"},
    {".continue", "an agent starts the servers that it names"},
    {".aider.conf.yml", "an agent runs commands that it names"},
    {".cursorrules", "an agent does what it says"},
    {".windsurfrules", "an agent does what it says"},
    {".clinerules", "an agent does what it says"},
    {"claude.md", "an agent does what it says"},
    {"claude.local.md", "an agent does what it says"},
    {"agents.md", "an agent does what it says"},
    {"gemini.md", "an agent does what it says"},
    {"copilot-instructions.md", "an agent does what it says", ".github"},
    // sbx
    {"sbx", "sbx takes policies and settings from it", ".config"},
});

/// For each first byte of a name, whether a rule may mean it. Bytes beyond ASCII may be left out
/// when names are compared.
constexpr auto kBegins = [] {
  std::array<bool, 256> begins{};
  for (std::size_t byte = 0x80; byte < begins.size(); ++byte) begins.at(byte) = true;
  for (const ProtectedName& rule : kRules) {
    const char first = rule.name.front();
    if (first == '*') continue;
    begins.at(static_cast<unsigned char>(first)) = true;
    if (first >= 'a' && first <= 'z')
      begins.at(static_cast<unsigned char>(first - 'a' + 'A')) = true;
  }
  return begins;
}();

/// `name` as a file system compares it that takes no notice of case: ASCII letters in lower case,
/// with the two other characters that fold to one of them, and without the characters that take no
/// room (Documentation/admin-guide/ ext4.rst, "Case-insensitive file name lookups"), nor the dots
/// at its end, which vfat does not store.
class Folded {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled as far as it is used
  explicit Folded(string_view name) {
    for (std::size_t at = 0; at < name.size() && length_ < text_.size();) {
      const string_view rest = name.substr(at);
      const auto byte = static_cast<unsigned char>(name[at]);
      if (byte < 0x80) {
        text_.at(length_++) = static_cast<char>(std::tolower(byte));
        ++at;
      } else if (rest.starts_with("\u017f")) {  // a long s
        text_.at(length_++) = 's';
        at += 2;
      } else if (rest.starts_with("\u212a")) {  // the sign of the kelvin
        text_.at(length_++) = 'k';
        at += 3;
      } else if (const std::size_t ignored = length_of_ignored(rest); ignored != 0) {
        at += ignored;
      } else {
        text_.at(length_++) = name[at++];
      }
    }
    while (length_ > 1 && text_.at(length_ - 1) == '.')
      --length_;  // vfat stores a name without them
  }
  [[nodiscard]] string_view text() const { return {text_.data(), length_}; }

 private:
  /// The length of the first character of UTF-8 text, if it has Unicode's property
  /// Default_Ignorable_Code_Point; else 0.
  static std::size_t length_of_ignored(string_view text) {
    struct Range {
      string_view first;
      string_view last;
    };
    static constexpr auto kIgnored = std::to_array<Range>({
        {"\u00ad", "\u00ad"},
        {"\u034f", "\u034f"},
        {"\u061c", "\u061c"},
        {"\u115f", "\u1160"},
        {"\u17b4", "\u17b5"},
        {"\u180b", "\u180f"},
        {"\u200b", "\u200f"},
        {"\u202a", "\u202e"},
        {"\u2060", "\u206f"},
        {"\u3164", "\u3164"},
        {"\ufe00", "\ufe0f"},
        {"\ufeff", "\ufeff"},
        {"\uffa0", "\uffa0"},
        {"\ufff0", "\ufff8"},
        {"\U0001bca0", "\U0001bca3"},
        {"\U0001d173", "\U0001d17a"},
        {"\U000e0000", "\U000e0fff"},
    });
    const auto range = std::ranges::find_if(kIgnored, [&](const Range& each) {
      const string_view one =
          text.substr(0, each.first.size());  // UTF-8 sorts as its characters do
      return one >= each.first && one <= each.last;
    });
    return range == kIgnored.end() ? 0 : range->first.size();
  }

  std::array<char, 256> text_;  // of which length_ are set
  std::size_t length_ = 0;
};

/// Few names of a large tree get past this: those that end as the rules do that begin with a '*',
/// or with what may be left out.
bool may_match_end(string_view name) {
  const auto last =
      static_cast<unsigned char>(std::tolower(static_cast<unsigned char>(name.back())));
  return name.size() > 10 && (last == 'e' || last == 't' || last == '.' || last >= 0x80);
}

bool fits(string_view name, string_view pattern) {
  if (name.empty() || (pattern.front() != '*' && pattern.front() != name.front())) return false;
  const std::size_t star = pattern.find('*');
  if (star == string_view::npos) return name == pattern;
  const string_view head = pattern.substr(0, star);
  const string_view tail = pattern.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

string_view last_of(string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

string_view path_above(string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == string_view::npos ? string_view() : path.substr(0, slash);
}

bool is_git_data(string_view folded) {
  return std::ranges::any_of(kGitData,
                             [&](const GitName& each) { return fits(folded, each.name); });
}

string_view reason_in_git(string_view folded) {
  return std::ranges::find_if(kOfGit, [&](const GitName& each) { return fits(folded, each.name); })
      ->why;
}

/// Below a directory of .git that holds data and other things: "info" and "worktrees/NAME".
string_view reason_below_git(string_view directory, string_view name) {
  const string_view outer = path_above(directory);
  if (!is_dot_git(last_of(outer)) && !is_dot_git(last_of(path_above(outer)))) return {};
  const Folded folded(name);
  if (is_dot_git(last_of(outer)) && Folded(last_of(directory)).text() == "info")
    return folded.text() == "exclude" ? string_view() : reason_in_git(folded.text());
  if (is_dot_git(last_of(path_above(outer))) && Folded(last_of(outer)).text() == "worktrees")
    return is_git_data(folded.text()) ? string_view() : reason_in_git(folded.text());
  return {};
}

bool is_secret(std::string_view key) {
  std::string lower(key);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return std::ranges::any_of(
      std::array<std::string_view, 5>{"extraheader", "password", "passwd", "token", "secret"},
      [&](std::string_view word) { return lower.contains(word); });
}

/// "https://user:word@host/x" becomes "https://host/x"; a user alone ("git@") is not a secret and
/// stays.
std::string without_password(std::string_view line) {
  std::string text(line);
  for (auto at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const auto end = text.find_first_of("/ \t\"", at + 3);
    const auto sign = text.rfind('@', end == std::string::npos ? text.size() : end);
    if (sign == std::string::npos || sign < at + 3) continue;
    const std::string_view user = std::string_view(text).substr(at + 3, sign - at - 3);
    const bool ssh = text.substr(0, at).ends_with("ssh");
    if (user.contains(':') || !ssh) text.erase(at + 3, sign - at - 2);
  }
  return text;
}

/// Length of the first line with its newline, and of the lines that backslashes join to it.
std::size_t logical_line(std::string_view text) {
  std::size_t at = 0;
  for (;;) {
    const auto end = text.find('\n', at);
    if (end == std::string_view::npos) return text.size();
    const bool goes_on =
        text.substr(0, end).ends_with('\\') || text.substr(0, end).ends_with("\\\r");
    if (!goes_on) return end + 1;
    at = end + 1;
  }
}

}  // namespace

bool is_dot_git(std::string_view name) {
  return name == ".git" || (name.size() >= 4 && kBegins[static_cast<unsigned char>(name.front())] &&
                            Folded(name).text() == ".git");
}

bool holds_submodules(std::string_view directory, std::string_view name) {
  return is_repository(path_above(directory), last_of(directory)) &&
         Folded(name).text() == "modules";
}

std::string_view reason_in_modules(std::span<const std::string> above, std::string_view name,
                                   bool is_directory) {
  const Folded folded(name);
  const auto is_data = [](const std::string& each) { return is_git_data(Folded(each).text()); };
  // The first name below modules is a submodule's, or begins it.
  if (above.size() > 1 && std::ranges::any_of(above.subspan(1), is_data))
    return std::ranges::find(kNeverInModules, folded.text()) == kNeverInModules.end()
               ? string_view()
               : reason_in_git(folded.text());
  const string_view why = reason_in_git(folded.text());
  const bool is_known = why != kOfGit.back().why && folded.text() != "modules";
  const bool is_free = is_directory || is_git_data(folded.text()) || folded.text() == "exclude";
  return is_known || !is_free ? why : string_view();
}

bool is_repository(std::string_view directory, std::string_view name) {
  return is_dot_git(name) || (is_dot_git(last_of(path_above(directory))) &&
                              Folded(last_of(directory)).text() == "worktrees");
}

bool has_settings_name(std::string_view name) {
  if (name.size() < 6 || (name.front() != 'c' && name.front() != 'C')) return false;
  const Folded folded(name);
  return folded.text() == "config" || folded.text() == "config.worktree";
}

std::string_view reason_to_protect(std::string_view directory, std::string_view name) {
  if (name.empty()) return {};
  const std::string_view holder = last_of(directory);
  if (is_dot_git(holder)) {
    const Folded folded(name);
    const bool is_mixed = folded.text() == "info" || folded.text() == "worktrees";
    return is_mixed || is_git_data(folded.text()) ? std::string_view()
                                                  : reason_in_git(folded.text());
  }
  if (const auto why = reason_below_git(directory, name); !why.empty()) return why;
  if (!kBegins[static_cast<unsigned char>(name.front())] && !may_match_end(name)) return {};
  const Folded folded(name);
  for (const ProtectedName& rule : kRules)
    if (fits(folded.text(), rule.name) &&
        (rule.directory.empty() || Folded(holder).text() == rule.directory))
      return rule.why;
  return {};
}

std::string_view reason_to_guard(std::string_view directory, std::string_view name,
                                 bool is_directory) {
  const std::string_view why = reason_to_protect(directory, name);
  return why.empty() && !is_directory && is_dot_git(name)
             ? "it leads git to another directory; git submodule update --init on the host makes "
               "that of a submodule"
             : why;
}

std::span<const Placeholder> placeholders() {
  // git takes "././." for the directory itself; an empty file would be an error to it. The text
  // tells sbx which files it may remove.
  static constexpr auto kPlaceholders = std::to_array<Placeholder>(
      {{.name = "commondir", .content = "././.\n"},
       {.name = "config.worktree", .content = "# made by sbx\n", .of_worktree = true},
       {.name = "hooks", .is_directory = true}});
  return kPlaceholders;
}

std::optional<std::string> without_credentials(std::string_view git_config) {
  std::string clean;
  std::string_view rest = git_config;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, logical_line(rest));
    const auto equals = line.find('=');
    if (equals != std::string_view::npos && is_secret(line.substr(0, equals)))
      clean += "\t# left out by sbx: a credential\n";
    else
      clean += without_password(line);
    rest.remove_prefix(line.size());
  }
  if (clean == git_config) return std::nullopt;
  return clean;
}

}  // namespace sbx::plan
