#include "hints/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "hints/last_words.hpp"
#include "hints/listeners.hpp"
#include "hints/modules.hpp"
#include "hints/script.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"
#include "plan/program/project_environment.hpp"

namespace sbx::hints {
namespace {

constexpr std::size_t kMost = 8;

/// The system's package managers, and what they say where they can't write to the system. Debian's
/// name the place even where another program has called them.
constexpr auto kInstallers = std::to_array<std::string_view>(
    {"apt", "apt-get", "aptitude", "dpkg", "dnf", "yum", "zypper", "apk", "pacman"});
constexpr auto kPlacesOfPackages =
    std::to_array<std::string_view>({"/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt"});
constexpr auto kLinesOfInstallers =
    std::to_array<std::string_view>({"E: ", "W: ", "dpkg: ", "dpkg-deb: "});
constexpr auto kNotRoot = std::to_array<std::string_view>(
    {"superuser privilege", "are you root", "as root", "unless you are root", "Permission denied",
     "Read-only file system"});

class Search {
 public:
  explicit Search(const Facts& facts)
      : facts_(facts), places_(facts.policy, facts.plan, facts.host, facts.typed, facts.reader) {}

  std::vector<Hint> run() {
    if (auto hint = about_installer()) tell(std::move(*hint));
    for (const Stream* const stream : {&facts_.outcome.err, &facts_.outcome.out})
      for (const LastWord& word : last_words(stream->last)) follow(word);
    // A write that was refused is certain by the policy; a name may have been looked for in vain.
    std::ranges::stable_sort(hints_, {}, &Hint::kind);
    if (hints_.size() > kMost) hints_.resize(kMost);
    return std::move(hints_);
  }

 private:
  void follow(const LastWord& word) {
    if (word.trouble == Trouble::refused) return follow_refused(word);
    for (const std::string& name : word.names) {
      std::optional<Hint> hint;
      switch (word.trouble) {
        case Trouble::read_only:
          hint = about_read_only(name);
          break;
        case Trouble::denied:
          // The most probable reading of the line alone: the others may be words of the message.
          hint = about_place_elsewhere(name);
          if (!hint && name == word.names.front() && places_.may_be_read(name))
            hint = about_write_denied(name);
          // Without a root of its own what is not granted is there, and refused.
          if (!hint && !has_own_root()) hint = about_missing(name);
          break;
        case Trouble::write_denied:
          hint = about_place_elsewhere(name);
          if (!hint) hint = about_write_denied(name);
          break;
        case Trouble::missing:
          hint = about_environment(name);
          if (!hint) hint = about_missing(name);
          if (!hint) hint = about_missing(beside_script(name));
          break;
        case Trouble::refused:
        case Trouble::too_large:
        case Trouble::no_room:
          break;
        case Trouble::module:
          hint = about_module(name);
          break;
        case Trouble::node_module:
          hint = about_node_module(name);
          break;
        case Trouble::r_package:
          hint = about_absent_module(word.trouble, name);
          break;
      }
      if (!hint) continue;
      tell(std::move(*hint));
      return;  // the other readings of the same line
    }
  }

  void tell(Hint hint) {
    if (told_.insert(std::string(name_of(hint.kind)) + hint.what).second)
      hints_.push_back(std::move(hint));
  }

  /// A program can say anything: only a port that it has called connect(2) for counts. Many name
  /// none.
  void follow_refused(const LastWord& word) {
    for (const std::uint16_t port : facts_.outcome.loopback_ports) {
      const std::string end = fmt::format(":{}", port);
      const auto named = std::ranges::find_if(
          word.names, [&end](const std::string& name) { return name.ends_with(end); });
      if (named == word.names.end() && !word.names.empty()) continue;
      if (auto hint = about_refused(named == word.names.end() ? "127.0.0.1" + end : *named, port))
        tell(std::move(*hint));
    }
  }

  [[nodiscard]] bool says(std::string_view words) const {
    return facts_.outcome.err.last.contains(words) || facts_.outcome.out.last.contains(words);
  }

  /// apt and its like change the system, which no program does here.
  [[nodiscard]] std::optional<Hint> about_installer() const {
    const auto is_installer = [](const std::string& word) {
      return std::ranges::find(kInstallers, plan::base_name(word)) != kInstallers.end();
    };
    const auto said = [this](std::string_view words) { return says(words); };
    const auto typed = std::ranges::find_if(facts_.typed, is_installer);
    const auto place = std::ranges::find_if(kPlacesOfPackages, said);
    const bool is_typed = typed != facts_.typed.end() && std::ranges::any_of(kNotRoot, said);
    // Other programs name these places too.
    const bool is_installers =
        typed != facts_.typed.end() || std::ranges::any_of(kLinesOfInstallers, said);
    if (!is_typed && (place == kPlacesOfPackages.end() || !is_installers)) return std::nullopt;
    const std::string what(place == kPlacesOfPackages.end() ? "/usr" : *place);
    const auto facts = places_.read_only(what);
    if (!facts || facts->is_workspace || !facts->grant.empty()) return std::nullopt;
    const std::string name(typed == facts_.typed.end() ? std::string_view("apt")
                                                       : plan::base_name(*typed));
    return Hint{
        .kind = HintKind::read_only,
        .what = what,
        .text = fmt::format(
            "{} installs nothing in a sandbox, where the system is read-only; install the "
            "package on the host{}",
            name,
            facts_.policy.filesystem.system.value == "host" ? ", and every sandbox shows it" : ""),
        .options = {},
        .perhaps = false};
  }

  [[nodiscard]] std::optional<Hint> about_read_only(const std::string& name) const {
    if (name.empty() || name.contains('\n')) return std::nullopt;
    const std::string path = places_.inside(name);
    const auto place = places_.read_only(path);
    // A word of the message, such as "cannot", is a name too.
    const bool is_path =
        name.contains('/') || name.contains('.') || plan::joined("/", name) == name;
    if (!place || (!is_path && !place->is_workspace && !place->is_file)) return std::nullopt;
    Hint hint{.kind = HintKind::read_only, .what = path, .text = {}};
    if (place->is_mount && !has_own_root()) return std::nullopt;
    if (place->is_mount) {
      hint.text = fmt::format(
          "\"{}\" can't be removed or renamed: it is a mount; what is in it can be", name);
    } else if (place->is_workspace) {
      hint.text = fmt::format("\"{}\" is in the working directory, which is read-only", name);
      hint.options = {"--workspace", ".:overlay"};
    } else if (!place->granted_by.empty()) {
      hint.text = place->is_file
                      ? fmt::format("\"{}\" is a mount of its own, of a file, and read-only", name)
                      : fmt::format("\"{}\" is in \"{}\", which is read-only", name, place->target);
      if (place->granted_by == "--read") hint.text += " (--read)";
      // Without a root of its own a sandbox gets no directory to write to.
      const bool is_offered = !place->grant.empty() && has_own_root();
      if (is_offered) hint.options = {"--write", plan::operand_text(place->grant)};
      if (is_offered && place->grant != place->target)
        hint.options.back() += ":" + plan::operand_text(place->target);
    } else {
      hint.text = fmt::format(
          "\"{}\" is in a part of the system that is read-only; the working directory, {}, can be "
          "written to",
          name,
          has_own_root()
              ? fmt::format("/tmp and the home, \"{}\"", plan::home_of(facts_.policy.environment))
              : std::string("$TMPDIR and the home, $HOME"));
    }
    return hint;
  }

  /// Landlock refuses a write with EACCES.
  [[nodiscard]] std::optional<Hint> about_write_denied(const std::string& name) const {
    constexpr int kNotExecutable = 126;
    const auto* exited = std::get_if<Exited>(&facts_.outcome.verdict);
    if (has_own_root() || (exited != nullptr && exited->code == kNotExecutable))
      return std::nullopt;
    return about_read_only(name);
  }

  /// Without namespaces the program's own directories have other paths than it knows.
  [[nodiscard]] std::optional<Hint> about_place_elsewhere(const std::string& name) const {
    if (has_own_root() || places_.inside(name) != name ||
        plan::is_within(name, facts_.plan.private_directory))
      return std::nullopt;
    for (const plan::Mount& step : facts_.plan.mounts)
      if (const auto* const copy = step.as<plan::mount::Copy>();
          copy != nullptr && plan::is_within(name, copy->source.path) && name != copy->source.path)
        return Hint{.kind = HintKind::not_granted,
                    .what = name,
                    .text = fmt::format(
                        "\"{}\" is in the workspace, of which a program without namespaces has a "
                        "copy; from its working directory, \"{}\" leads there",
                        name, name.substr(copy->source.path.size() + 1))};
    for (const std::string_view temporary : {"/tmp", "/var/tmp"})
      if (plan::is_within(name, temporary) && !places_.is_shown(name))
        return Hint{.kind = HintKind::read_only,
                    .what = name,
                    .text = fmt::format(
                        "\"{}\" is in {}, of which a program without namespaces reaches only what "
                        "the policy grants; $TMPDIR names a directory of its own",
                        name, temporary)};
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Hint> about_missing(const std::string& name) const {
    const std::string path = places_.not_granted(name);
    if (path.empty()) return std::nullopt;
    const std::string inside = places_.inside(name);
    if (inside == path)
      return Hint{
          .kind = HintKind::not_granted,
          .what = path,
          .text = fmt::format("it needs \"{}\", which is here but not in the sandbox", name),
          .options = {"--read", plan::operand_text(path)}};
    Hint hint{.kind = HintKind::not_granted,
              .what = path,
              .text = fmt::format("it needs \"{}\", which is \"{}\" here but not in the sandbox",
                                  name, path),
              .options = {"--read", plan::operand_text(path) + ":" + plan::operand_text(inside)}};
    if (has_own_root()) return hint;
    // Nothing is shown under another name there; a file can be copied.
    const auto seen = places_.look(path);
    hint.options.front() = "--in";
    if (!seen || seen->type != host::FileType::regular) hint.options.clear();
    return hint;
  }

  [[nodiscard]] bool has_own_root() const { return facts_.plan.private_directory.empty(); }

  /// The server is the host's, where one listens there; what is not a terminal does not learn
  /// whether that is so.
  [[nodiscard]] std::optional<Hint> about_refused(const std::string& address,
                                                  std::uint16_t port) const {
    if (!facts_.plan.network.own_namespace) return std::nullopt;
    const bool may_look = facts_.reader == Reader::person;
    if (may_look && !listens_on_loopback(facts_.kernels, port)) return std::nullopt;
    return Hint{.kind = HintKind::loopback,
                .what = address,
                .text = fmt::format(
                    "{} is the sandbox's own loopback, where nothing listens; a server of this "
                    "machine is host.sbx.internal:{} inside",
                    address, port),
                .options = {"--allow-host", fmt::format("host.sbx.internal:{}", port)}};
  }

  /// A name in the directory of the script that was typed; itself where that is the working
  /// directory.
  [[nodiscard]] std::string beside_script(const std::string& name) const {
    if (facts_.typed.empty() || !facts_.typed.front().contains('/')) return name;
    return plan::joined(plan::parent_of(facts_.typed.front()), name);
  }

  /// The interpreter that ran, and the word of the command line behind it; empty: its code was no
  /// file.
  struct Interpreter {
    std::string path;
    std::string script;
  };
  [[nodiscard]] Interpreter python() const {
    const std::vector<std::string>& typed = facts_.typed;
    const std::string& chosen = facts_.plan.interpreter.path;
    const std::string& command = chosen.empty() ? facts_.plan.executable : chosen;
    if (!plan::base_name(command).starts_with("python")) return {};
    if (!chosen.empty()) return {chosen, typed.empty() ? "" : typed.front()};
    return {command, typed.size() < 2 || typed[1].starts_with('-') ? "..." : typed[1]};
  }

  [[nodiscard]] std::optional<Hint> about_module(const std::string& name) const {
    for (const std::string& file : {name + ".py", name})
      for (const std::string& place : {beside_script(file), file})
        if (auto hint = about_missing(place)) {
          // Python looks in the script's own directory on the host, which can't be listed there.
          if (!has_own_root()) hint->options = {"--workspace", ".:overlay"};
          return hint;
        }
    const auto [chosen, script] = python();
    const std::string other =
        chosen.empty() ? "" : interpreter_with(name, chosen, facts_.host, places_);
    if (!other.empty())
      return Hint{.kind = HintKind::module,
                  .what = name,
                  .text = fmt::format("\"{}\" has no module {}, which {} has: {}", chosen, name,
                                      other, choosing(other, script))};
    if (auto hint = about_dependencies(name)) return hint;
    const std::string environment = environment_of(chosen);
    if (environment.empty()) return about_absent_module(Trouble::module, name);
    return Hint{.kind = HintKind::module,
                .what = name,
                .text = fmt::format("the virtual environment \"{}\" has no module {}, and sbx "
                                    "installs none; install it there, outside",
                                    environment, name)};
  }

  /// The command that takes another interpreter.
  [[nodiscard]] std::string choosing(const std::string& interpreter,
                                     const std::string& script) const {
    if (facts_.of_cell || script.empty())
      return fmt::format("PATH={}:$PATH in front of {} chooses it", plan::parent_of(interpreter),
                         facts_.of_cell ? "sbx run, or of sbx session start," : "sbx run");
    return fmt::format("sbx run ... {} {}", interpreter,
                       script == "..." ? script : shell_word(script));
  }

  /// The virtual environment that was used.
  [[nodiscard]] std::string environment_of(const std::string& interpreter) const {
    if (const std::string& typed = facts_.policy.interpreters.venv.value; !typed.empty())
      return typed;
    const std::string directory = plan::parent_of(plan::parent_of(interpreter));
    const bool is_one = !interpreter.empty() &&
                        plan::is_within(interpreter, facts_.host.working_directory) &&
                        places_.look(plan::joined(directory, "pyvenv.cfg")).has_value();
    return is_one ? directory : std::string();
  }

  [[nodiscard]] std::optional<Hint> about_node_module(const std::string& name) const {
    if (!places_.not_granted("node_modules/" + name).empty())
      return Hint{.kind = HintKind::module,
                  .what = name,
                  .text = fmt::format(
                      "it needs the module {} of \"node_modules\", which is here but not in the "
                      "sandbox",
                      name),
                  .options = {"--read", "node_modules"}};
    return about_absent_module(Trouble::node_module, name);
  }

  /// .venv/bin/python, where there is no .venv.
  [[nodiscard]] std::optional<Hint> about_environment(const std::string& name) const {
    const std::string directory = plan::environment_named(name);
    const std::string path = places_.outside(directory);
    if (directory.empty() || !plan::is_within(path, facts_.host.working_directory) ||
        places_.look(path))
      return std::nullopt;
    return Hint{.kind = HintKind::module,
                .what = directory,
                .text = fmt::format("there is no virtual environment \"{0}\"; outside, python3 -m "
                                    "venv {0} makes one",
                                    directory),
                .options = {"--venv", directory}};
  }

  /// PEP 723: a script's comments can list what it needs, and other programs install that.
  [[nodiscard]] std::optional<Hint> about_dependencies(const std::string& module) const {
    const std::string head = head_of_script(facts_.policy, facts_.host, facts_.typed);
    if (!("\n" + head).contains("\n# /// script\n")) return std::nullopt;
    return Hint{
        .kind = HintKind::module,
        .what = module,
        .text = fmt::format("\"{}\" lists its dependencies in a \"# /// script\" block, and sbx "
                            "installs none; install them into an environment outside",
                            facts_.typed.front()),
        .options = {"--venv", "DIR"}};
  }

  const Facts& facts_;
  Places places_;
  std::vector<Hint> hints_;
  std::set<std::string> told_;
};

constexpr std::size_t kLostShown = 3;

/// "a, b, c, ...".
std::string first_of(const std::vector<std::string>& names, bool are_all) {
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kLostShown); ++i)
    list += (list.empty() ? "" : ", ") + names[i];
  return list + (are_all && names.size() <= kLostShown ? "" : ", ...");
}

/// "; --out stands behind the command ...": empty where none does.
std::string given_too_late(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i)
    for (const std::string_view option : {"--out", "--apply", "--keep"})
      if (command[i] == option || command[i].starts_with(std::string(option) + "="))
        return fmt::format("; {} stands behind the command, so the program got it", option);
  return {};
}

}  // namespace

std::vector<Hint> after_failure(const Facts& facts) {
  if (facts.host.files == nullptr) return {};
  return Search(facts).run();
}

Hint about_lost_files(std::vector<std::string> names, bool are_all,
                      const std::vector<std::string>& changed,
                      const std::vector<std::string>& command) {
  const bool are_new = changed.empty();
  const bool are_old = names.empty();
  names.insert(names.end(), changed.begin(), changed.end());
  const std::string list = first_of(names, are_all);
  const bool is_one = are_all && names.size() == 1;
  if (!are_new) {
    const char* const what = is_one    ? "a file was changed and the change is"
                             : are_old ? "files were changed and the changes are"
                                       : "files were created or changed, and that is";
    return {
        .kind = HintKind::lost_file,
        .what = names.front(),
        .text = fmt::format("{} gone with the sandbox: {}{}", what, list, given_too_late(command)),
        .options = {"--apply"},
        .perhaps = false};
  }
  return {.kind = HintKind::lost_file,
          .what = names.front(),
          .text = fmt::format("{} created and {} gone with the sandbox: {}{}; --apply keeps {}",
                              is_one ? "a file was" : "files were", is_one ? "is" : "are", list,
                              given_too_late(command), is_one ? "it" : "them"),
          .options = {"--out", "DIR"},
          .perhaps = false};
}

Hint about_lost_home(const std::vector<std::string>& names) {
  const bool is_one = names.size() == 1;
  return {.kind = HintKind::lost_file,
          .what = names.front(),
          .text = fmt::format("{} created in the home and {} gone with the sandbox: {}; what is in "
                              "the working directory can be kept",
                              is_one ? "a file was" : "files were", is_one ? "is" : "are",
                              first_of(names, true)),
          .options = {},
          .perhaps = false};
}

}  // namespace sbx::hints
