#include "run/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "base/text.hpp"
#include "hints/hints.hpp"
#include "hints/last_words.hpp"
#include "hints/local_files.hpp"
#include "hints/modules.hpp"
#include "hints/ports.hpp"
#include "hints/script.hpp"
#include "network/denials.hpp"
#include "plan/files/deny.hpp"
#include "plan/files/git_worktree.hpp"
#include "plan/files/grants.hpp"
#include "plan/files/path_text.hpp"
#include "run/advice.hpp"

namespace sbx::run {
namespace {

/// Ended from outside, as by Ctrl-C: the sandbox lacked nothing.
bool was_stopped(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT ||
         signal == SIGKILL;
}

/// A shell exits with 128 plus the number of the signal that ended its last command.
bool failed(const Verdict& verdict) {
  if (const auto* exited = std::get_if<Exited>(&verdict))
    return exited->code != 0 && !was_stopped(exited->code - 128);
  const auto* signaled = std::get_if<Signaled>(&verdict);
  return signaled != nullptr && !was_stopped(signaled->signal);
}

bool shows_files(plan::MountKind kind) {
  return kind == plan::MountKind::bind || kind == plan::MountKind::overlay ||
         kind == plan::MountKind::copy || kind == plan::MountKind::file ||
         kind == plan::MountKind::proc || kind == plan::MountKind::outer_proc;
}

/// True if the plan makes something of the host visible at or above this path.
bool is_inside(const plan::Plan& plan, const std::string& path) {
  return std::any_of(plan.mounts.begin(), plan.mounts.end(), [&](const plan::Mount& mount) {
    if (!shows_files(mount.kind())) return false;
    return path == mount.target || path.starts_with(mount.target + "/") || mount.target == "/";
  });
}

/// True if the argument names something on the host that the sandbox lacks.
bool is_missing(const plan::Plan& plan, const host::Host& host, std::string_view argument) {
  if (argument.empty() || argument.front() == '-') return false;
  const std::string path = plan::normal(plan::joined(host.working_directory, argument));
  if (is_inside(plan, path)) return false;
  const auto facts = host.files->look(path);
  return facts &&
         (facts->type == host::FileType::regular || facts->type == host::FileType::directory);
}

/// The words of a shell command line: `sh -c 'cat data.csv'` names data.csv.
std::vector<std::string> words_of(const std::string& line) {
  constexpr std::size_t kMost = 64;
  constexpr std::string_view kEnds = " \t\n;|&<>()'\"`$=";
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size() && words.size() < kMost;) {
    const std::size_t end = std::min(line.find_first_of(kEnds, at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool is_shell(std::string_view program) {
  constexpr auto kShells = std::to_array<std::string_view>({"sh", "bash", "dash", "zsh", "ksh"});
  return std::ranges::find(kShells, plan::base_name(program)) != kShells.end();
}

/// The names that the user typed: the operands, and the words of a shell's -c.
std::vector<std::string> typed_names(const std::vector<std::string>& operands) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_line = i > 0 && operands[i - 1] == "-c" && is_shell(operands.front());
    if (!is_line) names.push_back(operands[i]);
    if (is_line) std::ranges::move(words_of(operands[i]), std::back_inserter(names));
  }
  return names;
}

/// Files that some programs look for in the working directory by themselves.
struct Habit {
  std::string_view program;
  std::string_view name;
};
constexpr auto kHabits = std::to_array<Habit>({{"make", "Makefile"},
                                               {"make", "makefile"},
                                               {"make", "GNUmakefile"},
                                               {"ninja", "build.ninja"},
                                               {"npm", "package.json"},
                                               {"cargo", "Cargo.toml"},
                                               {"go", "go.mod"},
                                               {"git", ".git"}});

/// True if the command usually looks for a file that exists here and not in the sandbox.
bool looks_here(const plan::Plan& plan, const host::Host& host,
                const std::vector<std::string>& operands) {
  if (operands.empty()) return false;
  return std::ranges::any_of(kHabits, [&](const Habit& habit) {
    return habit.program == plan::base_name(operands.front()) && is_missing(plan, host, habit.name);
  });
}

/// --explain saw the program look for something in the working directory.
bool looked_here(const Outcome& outcome, const std::string& directory) {
  return std::ranges::any_of(outcome.denials, [&](const Denial& denial) {
    return denial.kind == DenialKind::path && plan::is_within(denial.what, directory) &&
           denial.what != directory;
  });
}

/// Something else may have made the command fail. Denied paths don't count: programs look for many
/// paths in vain.
bool has_known_cause(const Outcome& outcome) {
  const bool refused = std::ranges::any_of(
      outcome.denials, [](const Denial& denial) { return is_refusal(denial.kind); });
  return refused || !outcome.limits_met.empty() || !outcome.network_failures.empty() ||
         !outcome.notes.empty();
}

/// A program that reads the message may have made the link to learn what is there.
constexpr std::string_view kWhereIsTold = "sbx tells where on a terminal, and so does --explain";

/// Whoever asks for --explain asks to be told.
bool may_learn_places(const HintStyle& style, const plan::Plan& plan) {
  return style.reader == hints::Reader::person || plan.explain;
}

std::string share_directory(std::string_view how) {
  return fmt::format(
      "the working directory inside the sandbox is empty; to share this one copy-on-write, {} "
      "--workspace .:overlay",
      how);
}

bool shows_nothing(const policy::Policy& policy, const plan::Plan& plan, const host::Host& host) {
  return policy.filesystem.workspace.mode.value == policy::WorkspaceMode::empty &&
         plan.working_directory == host.working_directory;
}

/// Says the same whether it exists or not: who typed the name may be a program.
std::string about_hidden(const std::string& name, const plan::DenyRules& hidden,
                         const host::Host& host) {
  const std::string path = plan::normal(plan::joined(host.working_directory, name));
  const plan::DenyRule* const rule = name.front() == '-' ? nullptr : hidden.covers(path);
  return rule == nullptr
             ? std::string()
             : fmt::format("\"{}\" is hidden in the sandbox by {}", name, plan::describe(*rule));
}

/// What an untrusted checkout leads to is proposed only where it can be granted without harm: not
/// the home or above it, nor what is denied.
bool may_be_proposed(const policy::Policy& policy, const host::Host& host,
                     const std::string& place) {
  const std::string home =
      host.home.empty() ? "/" : host.files->canonical(host.home).value_or(host.home);
  if (plan::is_within(home, place) || plan::is_forbidden(place) || place == "/tmp" ||
      hints::is_private(place, host))
    return false;
  const plan::DenyRules hidden(plan::resolve_deny(policy.filesystem.deny, host), host.files.get());
  return hidden.covers(place) == nullptr;
}

/// A file or directory to which a name of the sandbox leads by a link, and which is not there;
/// empty if that is not so.
std::string behind_link(const policy::Policy& policy, const plan::Plan& plan,
                        const host::Host& host, const hints::Places& places,
                        std::string_view name) {
  if (name.empty() || name.front() == '-') return {};
  const std::string path = plan::normal(plan::joined(host.working_directory, name));
  if (!is_inside(plan, path)) return {};
  const auto target = places.look(path);
  if (!target || target->path == path || is_inside(plan, target->path)) return {};
  const bool is_plain =
      target->type == host::FileType::regular || target->type == host::FileType::directory;
  const bool is_harmless = is_plain && !target->may_be_denied &&
                           !places.is_dotted_in_home(target->path) &&
                           may_be_proposed(policy, host, target->path);
  return is_harmless ? target->path : std::string();
}

/// The nearest directory above both.
std::string common_parent(std::string directory, std::string_view other) {
  while (directory != "/" && !plan::is_within(other, directory))
    directory = plan::parent_of(directory);
  return directory;
}

bool is_read_only(const plan::Plan& plan, const std::string& path) {
  const plan::Mount* deepest = nullptr;
  for (const plan::Mount& mount : plan.mounts)
    if (shows_files(mount.kind()) && plan::is_within(path, mount.target) &&
        (deepest == nullptr || mount.target.size() >= deepest->target.size()))
      deepest = &mount;
  return deepest != nullptr && deepest->read_only();
}

/// A link of a file of an overlay's lower directory is a copy, with a number of its own; git takes
/// that for an attack.
std::string about_git_clone(const Outcome& outcome) {
  const bool met =
      std::ranges::any_of(std::array{&outcome.err, &outcome.out}, [](const Stream* stream) {
        return std::string_view(stream->last).contains("hardlink different from source");
      });
  return met ? "git clone links files, and in a copy-on-write directory a link is another file; "
               "git clone --no-hardlinks copies them"
             : "";
}

bool says(const Outcome& outcome, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&outcome](std::string_view word) {
    return std::string_view(outcome.err.last).contains(word) ||
           std::string_view(outcome.out.last).contains(word);
  });
}

/// By its own words alone.
bool misses_file(const Outcome& outcome) {
  return says(outcome, {"No such file", "no such file", "cannot open file"});
}

/// By its own words, and of a file on a disk.
bool was_denied(const Outcome& outcome) {
  const auto is_file = [](const std::string& name) {
    return name.starts_with('/') &&
           std::ranges::none_of(std::to_array<std::string_view>({"/dev", "/proc", "/sys"}),
                                [&](auto top) { return plan::is_within(name, std::string(top)); });
  };
  for (const Stream* const stream : {&outcome.err, &outcome.out})
    for (const hints::LastWord& word : hints::last_words(stream->last))
      if (word.trouble == hints::Trouble::denied && std::ranges::any_of(word.names, is_file))
        return true;
  return false;
}

/// A script that failed and speaks of a file that is absent or refused. `err` is empty where both
/// streams go to one file.
bool may_miss_files(const Outcome& outcome, const plan::Plan& plan) {
  const auto* exited = std::get_if<Exited>(&outcome.verdict);
  const std::string_view said = outcome.err.joined ? outcome.out.last : outcome.err.last;
  constexpr auto kWords = std::to_array<std::string_view>(
      {"No such file", "no such file", "cannot open file", "NoSuchFile", "FileNotFound", "ENOENT",
       "Permission denied", "PermissionError", "EACCES"});
  return exited != nullptr && exited->code == 1 && !plan.interpreter.path.empty() &&
         std::ranges::any_of(kWords, [said](auto words) { return said.contains(words); });
}

/// The grants of one file each that the policy names; a script is shown without one.
std::vector<const plan::Mount*> granted_files(const plan::Plan& plan, const host::Host& host) {
  std::vector<const plan::Mount*> files;
  for (const plan::Mount& mount : plan.mounts) {
    const plan::HostSource* const source = mount.host_source();
    if (mount.kind() != plan::MountKind::bind || source == nullptr || mount.origin.file.empty())
      continue;
    const auto facts = host.files->look(source->path);
    if (facts && facts->type == host::FileType::regular) files.push_back(&mount);
  }
  return files;
}

/// A granted file is a mount of its own, which rename(2) can't replace (EBUSY), and no rename goes
/// from one mount to another (EXDEV).
std::string about_rename(const Outcome& outcome, const policy::Policy& policy,
                         const plan::Plan& plan, const host::Host& host, std::string_view how) {
  const bool is_busy = says(outcome, {"Device or resource busy", "EBUSY"});
  const bool is_other = says(outcome, {"cross-device link", "Cross-device link", "EXDEV"});
  if (!is_busy && !is_other) return {};
  const std::vector<const plan::Mount*> files = granted_files(plan, host);
  const auto named = std::ranges::find_if(files, [&outcome](const plan::Mount* file) {
    return says(outcome, {plan::base_name(file->target)});
  });
  const plan::Mount* const file = named != files.end()           ? *named
                                  : is_busy && files.size() == 1 ? files.front()
                                                                 : nullptr;
  if (file != nullptr) {
    const std::string above = plan::parent_of(file->host_source()->path);
    std::string text = fmt::format(
        "\"{}\" is granted as one file, which rename() can't move or replace", file->target);
    if (file->read_only()) return text;
    if (!may_be_proposed(policy, host, above) || file->host_source()->path != file->target)
      return text + "; in a directory of its own, which is granted, it can";
    return text + fmt::format("; to grant its directory, {} --write {}", how,
                              above == host.working_directory
                                  ? "."
                                  : shell_word(plan::operand_text(above)));
  }
  const bool has_overlay = std::ranges::any_of(plan.mounts, [](const plan::Mount& mount) {
    return mount.kind() == plan::MountKind::overlay;
  });
  if (!is_other) return {};
  return fmt::format(
      "rename() moves nothing between the working directory, the home and /tmp{}; mv and "
      "shutil.move copy instead",
      has_overlay ? ", and no directory that was there before, as all is copy-on-write" : "");
}

/// git said "fatal:", and a part of the repository is elsewhere.
std::string about_git(const Outcome& outcome, const policy::Policy& policy, const plan::Plan& plan,
                      const host::Host& host, const HintStyle& style) {
  const std::vector<std::string>& operands = style.operands;
  const std::string_view how = style.how;
  constexpr int kFatal = 128;
  const auto* exited = std::get_if<Exited>(&outcome.verdict);
  const auto is_git = [](const std::string& word) { return plan::base_name(word) == "git"; };
  if (exited == nullptr || exited->code != kFatal || operands.empty() ||
      std::ranges::none_of(typed_names(operands), is_git))
    return {};
  const std::string directory = plan::repository_around(*host.files, host.working_directory);
  if (directory.empty()) return {};
  for (const std::string& place : plan::git_elsewhere(*host.files, directory)) {
    const bool is_shown = is_inside(plan, place);
    if ((is_shown && !is_read_only(plan, place)) || !may_be_proposed(policy, host, place)) continue;
    const std::string above = common_parent(directory, place);
    const std::string wider =
        may_be_proposed(policy, host, above)
            ? fmt::format("to share all of it copy-on-write, {} --workspace {}:overlay", how,
                          shell_word(plan::operand_text(above)))
            : std::string();
    if (is_shown && wider.empty()) continue;
    const bool tells_place = may_learn_places(style, plan) || plan::is_within(place, directory);
    if (!tells_place && is_shown)
      return "the repository of this directory is read-only in the sandbox, and outside the "
             "workspace; sbx tells more on a terminal";
    if (!tells_place)
      return fmt::format("git needs a part of its repository outside the workspace; {}",
                         kWhereIsTold);
    if (is_shown)
      return fmt::format(
          "the repository of this directory, \"{}\", is read-only in the sandbox; {}", place,
          wider);
    return fmt::format("git needs \"{}\", which is not in the sandbox; to show it, {} --read {}{}",
                       place, how, shell_word(plan::operand_text(place)),
                       wider.empty() ? "" : "; " + wider);
  }
  return {};
}

std::string hint_after(const Outcome& outcome, const policy::Policy& policy, const plan::Plan& plan,
                       const host::Host& host, const HintStyle& style) {
  const std::vector<std::string>& operands = style.operands;
  const std::string_view how = style.how;
  const std::vector<std::string> typed = typed_names(operands);
  const hints::Places places(policy, plan, host, typed, style.reader);
  const plan::DenyRules hidden(plan::resolve_deny(policy.filesystem.deny, host), host.files.get());
  const bool is_empty = shows_nothing(policy, plan, host);
  // Only the script itself is bound; the files in its arguments may not be.
  for (const std::string& name : typed) {
    if (name.empty()) continue;
    const std::string target = behind_link(policy, plan, host, places, name);
    if (!target.empty() && !may_learn_places(style, plan))
      return fmt::format("\"{}\" leads outside the workspace; {}", name, kWhereIsTold);
    if (!target.empty())
      return fmt::format(
          "\"{}\" leads to \"{}\", which is not in the sandbox; to show it, {} --read {}", name,
          target, how, shell_word(plan::operand_text(target)));
    const bool is_directory_here =
        name.front() == '.' && name.find_first_not_of("./") == std::string::npos;
    if (is_directory_here && is_missing(plan, host, name))
      return is_empty ? share_directory(how) : "";
    if (std::string text = about_hidden(name, hidden, host); !text.empty()) return text;
    // The hint about what a cell missed says it too, and is in the record.
    if (style.of_cell || places.not_granted(name).empty()) continue;
    return fmt::format("\"{}\" exists here but not in the sandbox; to show it, {} --read {}", name,
                       how, shell_word(plan::operand_text(name)));
  }
  if (std::string text = about_git_clone(outcome); !text.empty()) return text;
  if (std::string text = about_rename(outcome, policy, plan, host, how); !text.empty()) return text;
  if (std::string text = about_git(outcome, policy, plan, host, style); !text.empty()) return text;
  if (is_empty &&
      (looks_here(plan, host, operands) || looked_here(outcome, host.working_directory)))
    return share_directory(how);
  return {};
}

bool says_too_large(std::string_view words) {
  return std::ranges::any_of(hints::last_words(words), [](const hints::LastWord& word) {
    return word.trouble == hints::Trouble::too_large;
  });
}

/// Where the private disk shows no file of that size, only the program's words tell of the limit:
/// in a live directory, or on a disk in a directory.
std::string note_of_too_large(const Outcome& outcome, const policy::Policy& policy,
                              std::string_view how) {
  const Bytes limit = policy.limits.file_size.value;
  const auto is_told = [](const LimitMet& met) { return met.limit == "file_size"; };
  if (limit.count == Budgets{}.file_size.count || limit.count == 0 ||
      std::ranges::any_of(outcome.limits_met, is_told) ||
      (!says_too_large(outcome.err.last) && !says_too_large(outcome.out.last)))
    return {};
  return fmt::format(
      "perhaps a file met limits.file_size = \"{}\"; to allow more, {} --set "
      "'limits.file_size=\"{}\"'",
      to_text(limit), how, to_text(Bytes{2 * limit.count}));
}

/// An overlay copies a file whole before the first write to it, and gives up what it has copied
/// where that does not fit: the private disk is then not found full.
std::string note_of_copied_file(const Outcome& outcome, const policy::Policy& policy,
                                const hints::Places& places, std::string_view how) {
  const std::uint64_t limit = policy.limits.disk.value.count;
  const std::uint64_t written = outcome.usage.written_bytes.value_or(0);
  if (limit == 0) return {};
  for (const Stream* const stream : {&outcome.err, &outcome.out})
    for (const hints::LastWord& word : hints::last_words(stream->last)) {
      if (word.trouble != hints::Trouble::no_room) continue;
      for (const std::string& name : word.names) {
        const std::uint64_t size = places.copied_when_written(name);
        if (size == 0 || size + written <= limit) continue;
        std::uint64_t enough = limit;
        while (enough <= size + written) enough *= 2;
        return fmt::format(
            "{}\"{}\" has {}, and the first write to a file of a copy-on-write directory copies "
            "all of it, which limits.disk = \"{}\" has no room for; to allow more, {} --disk {}",
            size > limit ? "" : "perhaps: ", name, describe(Bytes{size}), to_text(Bytes{limit}),
            how, to_text(Bytes{enough}));
      }
    }
  return {};
}

/// "--env NAME" of a variable that the caller does not have, where the program speaks of it.
std::string note_of_unset(const Outcome& outcome, const policy::Policy& policy,
                          const host::Host& host) {
  for (const auto& name : policy.environment.pass)
    if (name.origin.layer == Layer::command_line && !host.environment.contains(name.value) &&
        says(outcome, {name.value}))
      return fmt::format(
          "{0} is not set here, so --env {0} passes nothing; --env {0}=VALUE sets it", name.value);
  return {};
}

/// What a note says already needs no hint.
void leave_out_told(std::vector<Hint>& hints, const std::string& note) {
  std::erase_if(hints, [&](const Hint& hint) {
    if (hint.kind == HintKind::read_only && note.contains("read-only")) return true;
    return hint.kind == HintKind::not_granted &&
           (note.contains(hint.what) || note.contains(plan::base_name(hint.what)) ||
            note.contains("--workspace"));
  });
}

/// The name alone was refused; what was typed, the script and the last words often say which port
/// comes next.
void put_ports(Outcome& outcome, const policy::Policy& policy, const plan::Plan& plan,
               const host::Host& host, const std::vector<std::string>& operands) {
  constexpr std::string_view kName = "name ";
  for (Denial& denial : outcome.denials) {
    if (denial.kind != DenialKind::network || !denial.what.starts_with(kName) ||
        denial.allow_with.empty())
      continue;
    const std::string name = denial.what.substr(kName.size());
    auto port = hints::port_in(plan.command, name);
    if (!port) port = hints::port_in(typed_names(operands), name);
    if (!port && !plan.interpreter.path.empty())
      port = hints::port_in(hints::head_of_script(policy, host, operands), name);
    for (const Stream* const stream : {&outcome.err, &outcome.out})
      if (!port) port = hints::port_in(stream->last, name);
    if (port) network::put_port(denial, *port);
  }
}

}  // namespace

void add_hints(Outcome& outcome, const policy::Policy& policy, const plan::Plan& plan,
               const host::Host& all, const HintStyle& style) {
  const bool can_look = all.files != nullptr && !all.working_directory.empty();
  if (!can_look || (!failed(outcome.verdict) && outcome.denials.empty())) return;
  const host::Host host = hints::local_view(all);
  put_ports(outcome, policy, plan, host, style.operands);
  if (!failed(outcome.verdict)) return;
  const std::vector<std::string> typed = typed_names(style.operands);
  std::vector<Hint> found = hints::after_failure({.outcome = outcome,
                                                  .policy = policy,
                                                  .plan = plan,
                                                  .host = host,
                                                  .kernels = *all.files,
                                                  .typed = typed,
                                                  .reader = style.reader,
                                                  .of_cell = style.of_cell});
  if (std::string note = note_of_too_large(outcome, policy, style.how); !note.empty())
    outcome.notes.push_back(std::move(note));
  const hints::Places places(policy, plan, host, typed, style.reader);
  if (std::string note = note_of_copied_file(outcome, policy, places, style.how); !note.empty())
    outcome.notes.push_back(std::move(note));
  if (std::string note = note_of_unset(outcome, policy, host); !note.empty())
    outcome.notes.push_back(std::move(note));
  if (std::string note = note_of_words(outcome, plan, host, style.reader, style.how); !note.empty())
    outcome.notes.push_back(std::move(note));
  if (!has_known_cause(outcome)) {
    std::string note = hint_after(outcome, policy, plan, host, style);
    if (!note.empty()) leave_out_told(found, note);
    if (note.empty() && found.empty() && style.of_cell && shows_nothing(policy, plan, host) &&
        misses_file(outcome))
      note = share_directory(style.how);
    const bool can_explain = !plan.explain && plan.private_directory.empty();
    if (note.empty() && found.empty() && can_explain && may_miss_files(outcome, plan))
      note = "note: files outside the policy look absent; rerun with --explain to see which";
    if (note.empty() && found.empty() && !plan.private_directory.empty() && was_denied(outcome))
      note =
          "note: without namespaces files outside the policy are refused (\"Permission denied\"); "
          "--read FILE shows one";
    if (!note.empty()) outcome.notes.push_back(std::move(note));
  }
  std::ranges::move(found, std::back_inserter(outcome.hints));
}

}  // namespace sbx::run
