#include "cli/habits.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "base/letters.hpp"
#include "base/text.hpp"

namespace sbx::cli {
namespace {

/// `form` gets the words that follow, or `usual` where there are none; one that begins with "sbx"
/// is a form of its own.
struct CommandHabit {
  std::string_view words;
  const char* form;
  const char* usual;
};

constexpr CommandHabit kCommandHabits[] = {
    // docker and E2B have these commands for a sandbox that stays.
    {"exec", "sbx session exec {}", "NAME -- COMMAND"},
    {"eval", "sbx session eval {}", "NAME -c CODE"},
    {"start", "sbx session start {}", "NAME"},
    {"create", "sbx session start {}", "NAME"},
    {"attach", "sbx session eval -i {}", "NAME"},
    {"connect", "sbx session eval -i {}", "NAME"},
    {"cp", "sbx session put NAME FILE, or sbx session get NAME PATH", ""},
    {"kill", "sbx session stop {}",
     "sbx stop ID ends a run of sbx ps, sbx session stop NAME a session"},
    {"rm", "sbx session stop {}", "NAME"},
    {"ls", "sbx session list", ""},
    {"list", "sbx session list", ""},
    {"logs", "sbx session logs {}",
     "sbx session logs NAME CALL: sbx session list names sessions, sbx session calls NAME calls"},
    {"stats", "sbx session stats {}", "NAME"},
    {"top", "sbx session stats {}", "NAME"},
    {"inspect", "sbx session show {}", "NAME"},
    {"diff", "sbx session diff {}", "NAME"},
    {"apply", "sbx session apply {}", "NAME"},
    {"sessions", "sbx session list", ""},
    {"sandboxes", "sbx session list", ""},
    {"containers", "sbx session list", ""},
    {"sandbox", "sbx session start NAME", ""},
    {"container", "sbx session start NAME", ""},
    {"history", "sbx session calls {}", "NAME"},
    {"login", "sbx run COMMAND: there are no accounts, sbx works on this machine alone", ""},
    {"image", "sbx policy list: there are no images, a policy says what a program sees", ""},
    {"volume", "sbx run --workspace DIR COMMAND: there are no volumes", ""},
    {"compose", "sbx session start {}", "NAME"},
    {"pull", "sbx run COMMAND: there are no images, the programs are this machine's", ""},
    {"build", "sbx run COMMAND: there are no images, the programs are this machine's", ""},
    {"images", "sbx policy list: there are no images, a policy says what a program sees", ""},
    {"info", "sbx doctor", ""},
    {"init", "sbx policy init", ""},
    // Interpreters and notebooks.
    {"shell", "sbx session exec -i {} bash", "sbx run -i -p shell bash"},
    {"repl", "sbx session start work; sbx session eval -i work", ""},
    {"console", "sbx session start work; sbx session eval -i work", ""},
    {"notebook", "sbx run -p python --cells {}", "FILE.ipynb"},
    {"nbconvert", "sbx run -p python --cells FILE.ipynb --out results", ""},
    {"papermill", "sbx run -p python --out results --cells FILE.ipynb", ""},
    {"execute", "sbx run -p python --cells {}", "FILE.ipynb"},
    {"jupyter console", "sbx session start work; sbx session eval -i work", ""},
    {"jupyter nbconvert", "sbx run -p python --cells FILE.ipynb --out results", ""},
    {"jupyter", "sbx run -p python --cells {}", "FILE.ipynb"},
    // After "session".
    {"session create", "sbx session start {}", "NAME"},
    {"session new", "sbx session start {}", "NAME"},
    {"session open", "sbx session start {}", "NAME"},
    {"session remove", "sbx session stop {}", "NAME"},
    {"session delete", "sbx session stop {}", "NAME"},
    {"session end", "sbx session stop {}", "NAME"},
    {"session close", "sbx session stop {}", "NAME"},
    {"session attach", "sbx session eval -i {}", "NAME"},
    {"session connect", "sbx session eval -i {}", "NAME"},
    {"session repl", "sbx session eval -i {}", "NAME"},
    {"session shell", "sbx session exec -i {} bash", "NAME"},
    {"session run", "sbx session exec {}", "NAME -- COMMAND"},
    {"session python", "sbx session eval {}", "NAME -c CODE"},
    {"session ps", "sbx session list", ""},
    {"session spawn", "sbx session start {}", "NAME"},
    {"session top", "sbx session stats {}", "NAME"},
    {"session cp", "sbx session put NAME FILE, or sbx session get NAME PATH", ""},
    {"session upload", "sbx session put {}", "NAME FILE"},
    {"session write", "sbx session put {}", "NAME FILE"},
    {"session download", "sbx session get {}", "NAME PATH"},
    {"session read", "sbx session get {}", "NAME PATH"},
    {"session inspect", "sbx session show {}", "NAME"},
    {"session info", "sbx session show {}", "NAME"},
    {"session status", "sbx session show {}", "NAME"},
    {"session files", "sbx session ls {}", "NAME"},
    {"session timeout", "sbx session extend {}", "NAME 30m"},
    {"session help", "sbx help session", ""},
    {"policy help", "sbx help policy", ""},
    {"changes help", "sbx help changes", ""},
};

struct OptionHabit {
  std::string_view options;  ///< separated by blanks
  const char* of_run;
  const char* of_exec;  ///< null: the session's, given at its start
};

/// Of commands of sessions, in front of kOptionHabits. `commands` begins the command's name.
struct SessionHabit {
  std::string_view options;
  std::string_view commands;
  const char* form;
};

constexpr SessionHabit kSessionHabits[] = {
    {"-k --kernel --kernel-name --kernel_name --language -l --lang", "session start",
     "a session speaks every language: sbx session eval NAME --lang LANGUAGE -c CODE"},
    {"--idle --idle-timeout", "session start", "--set 'session.idle=\"5m\"'"},
    {"--lifetime --ttl", "session start", "--set 'session.lifetime=\"1h\"'"},
    {"--image --template --entrypoint", "session start",
     "leave it out: there are no images; -p POLICY says what the session may do"},
    {"-e --eval", "session eval", "-c CODE is a cell; --env NAME=VALUE sets a variable"},
    {"--code --command --cmd --exec --execute", "session eval", "-c CODE"},
    {"-k --kernel --kernel-name --kernel_name --language -l", "session eval",
     "--lang NAME, as --lang python"},
    {"-f --file --script", "session eval", "the file is an operand: sbx session eval NAME FILE"},
    {"--out --output-dir --out-dir", "session eval",
     "--results DIR keeps the values of a cell; sbx session get SESSION PATH --out DIR copies "
     "files"},
    {"--out --output-dir --out-dir --collect", "session s",
     "files come out later: sbx session get NAME PATH --out DIR"},
    {"--out --output-dir --out-dir --collect", "session e",
     "files come out by a command: sbx session get NAME PATH --out DIR"},
    {"--apply --yes", "session e", "afterwards: sbx session apply NAME"},
    {"--diff", "session e", "afterwards: sbx session diff NAME"},
    {"--keep", "session e", "afterwards: sbx session keep NAME SET"},
    {"--apply --diff --keep", "session start",
     "later: sbx session diff NAME, sbx session apply NAME, sbx session keep NAME SET"},
    {"--session --name", "session e", "the session is the first operand"},
    {"--cwd", "session start",
     "--workspace DIR:overlay makes DIR the working directory; --cwd DIR is a call's: sbx session "
     "exec NAME --cwd DIR"},
    {"-a --all", "ps", "leave it out: sbx ps lists every run, and one that has ended is gone"},
    {"-a --all", "session list",
     "leave it out: sbx session list lists every session, and one that has ended is gone"},
};

constexpr const char* kNoCapabilities = "leave it out: a program never has capabilities here";
constexpr const char* kNoDevices = "leave it out: sbx grants no GPU and no other device";
constexpr const char* kOwnKernelParts =
    "leave it out: each run has namespaces, a /proc, a /dev and a /tmp of its own";

constexpr const char* kOneUser =
    "leave it out: inside, every program is the user sandbox, uid 1000, and never root";
constexpr const char* kNoContainer = "leave it out: there is no daemon, no image and no container";
constexpr const char* kNothingInstalled =
    "sbx installs nothing: --venv DIR uses an environment that was made outside";

constexpr OptionHabit kOptionHabits[] = {
    {"--ulimit --rlimit", "--processes, --cpu-time, --memory or --set 'limits.open_files=1024'",
     nullptr},
    {"--shm-size", "--disk SIZE bounds /dev/shm, /tmp and the home together", nullptr},
    {"--dns --add-host --link --ip", "leave it out: --allow-host HOST lets a host be reached",
     nullptr},
    {"-l --label --restart --pull --platform --log-driver --cgroup-parent --storage-opt "
     "--health-cmd --stop-signal",
     kNoContainer, kNoContainer},
    {"--cpuset-cpus --cpu-shares --cpu-quota --cpu --cpu-limit", "--cpus NUMBER", nullptr},
    {"--memory-limit --mem-limit --max-memory --memory-reservation", "--memory SIZE", nullptr},
    {"--time-limit --time_limit --wall-time --max-time --stop-timeout", "--timeout TIME",
     "--timeout TIME"},
    {"--whitelist --allow-read --ro --readonly", "--read PATH", nullptr},
    {"--allow-write --rw", "--write PATH", nullptr},
    {"--allow-net --allow --allow-hosts --allow-domain", "--allow-host HOST[:PORT], once for each",
     nullptr},
    {"--no-network --no-net --offline", "--net none", nullptr},
    {"--allow-env", "--env NAME", "--env NAME=VALUE"},
    {"--output-dir --out-dir --outdir --save --artifacts --results", "--out DIR", nullptr},
    {"--file --files --input --upload --copy", "--in FILE copies a file in, --read FILE shows it",
     "sbx session put NAME FILE"},
    {"-r --packages --package --with --requirements --requirement --pip", kNothingInstalled,
     kNothingInstalled},
    {"--code --command --cmd --exec --eval", "--lang NAME -c CODE; a command is an operand",
     "--lang NAME -c CODE; a command is an operand"},
    {"--script --program", "the script is an operand: sbx run script.py",
     "the command is an operand: sbx session exec NAME -- COMMAND"},
    {"-C --dir --directory --project", "--workspace DIR:overlay", "--cwd DIR"},
    {"--home --homedir", "leave it out: the home is new and empty; --in FILE:'~/NAME' fills it",
     "leave it out: the home is the session's own"},
    {"-y --assume-yes", "--yes, with --apply", "leave it out: a call asks nothing"},
    {"--commit --persist", "--apply, or --keep NAME", "leave it out: a session keeps its state"},
    {"--debug --log-level", "-v, and --explain for paths that were not found", "-v"},
    {"-e --env-var --setenv", "--env NAME=VALUE sets a variable",
     "--env NAME=VALUE sets a variable"},
    {"-w --workdir --chdir",
     "--workspace DIR:overlay makes DIR the working directory, copy-on-write",
     "--cwd DIR is where a call begins"},
    {"--volume --mount --bind-mount",
     "--read SOURCE:TARGET shows a file or directory, --write SOURCE:TARGET lets it be changed",
     nullptr},
    {"--ro-bind --ro-bind-try", "--read SOURCE:TARGET", nullptr},
    {"--bind --bind-try --dev-bind", "--write SOURCE:TARGET", nullptr},
    {"-t --tty --it", "-i gives the program a terminal", "-i gives the program a terminal"},
    {"--rm", "leave it out: nothing of a run stays", "leave it out: a call leaves no container"},
    {"--name", "a session's name is an operand: sbx session start NAME; run --session NAME",
     nullptr},
    {"--network", "--net none, --net host or --allow-host HOST", nullptr},
    {"--share-net", "--net host", nullptr},
    {"--unshare-net --unshare-all --unshare-user --unshare-pid --unshare-ipc --unshare-uts "
     "--unshare-cgroup --new-session --init --ipc --pid --userns --uts --cgroupns --proc --dev "
     "--tmpfs --clearenv --unsetenv --hostname",
     kOwnKernelParts, kOwnKernelParts},
    {"-u --user --uid --gid --group", kOneUser, kOneUser},
    {"--cap-drop --cap-add --privileged --security-opt", kNoCapabilities, kNoCapabilities},
    {"--read-only", "leave it out: the system is read-only in every run",
     "leave it out: the system is read-only in every run"},
    {"--gpus --gpu --device --runtime", kNoDevices, kNoDevices},
    {"--publish --publish-all --expose --port",
     "--set 'network.publish=[\"127.0.0.1:8080:80\"]' leads a port of this machine, 8080, to one "
     "inside, 80",
     nullptr},
    {"-k --kernel --kernel-name --kernel_name --language", "--lang NAME, as --lang python",
     nullptr},
    {"-m --mem --memory-swap", "--memory SIZE", nullptr},
    {"--pids-limit", "--processes NUMBER", nullptr},
    {"--entrypoint --image --template", "name the command: there are no images",
     "name the command: there are no images"},
    {"-d --detach --background --bg",
     "a session keeps what runs in the background: sbx session start work; sbx session exec -d "
     "work -- COMMAND",
     "-d"},
    {"--allow-errors", "--keep-going", nullptr},
    {"--execute --inplace --to --notebook", "--cells FILE.ipynb, and --out DIR for the result",
     nullptr},
};

constexpr const char* kAtTheStart =
    "the session's, given at its start: sbx session start NAME with {}";

bool names_command(const CommandHabit& habit, std::span<const char* const> arguments) {
  const auto blank = habit.words.find(' ');
  if (habit.words.substr(0, blank) != arguments[0]) return false;
  return blank == std::string_view::npos ||
         (arguments.size() > 1 && habit.words.substr(blank + 1) == arguments[1]);
}

bool lists(std::string_view options, std::string_view option) {
  for (;;) {
    const auto blank = options.find(' ');
    if (options.substr(0, blank) == option) return true;
    if (blank == std::string_view::npos) return false;
    options.remove_prefix(blank + 1);
  }
}

/// "-it": here -i alone gives a terminal.
std::string without_tty(const std::string& word) {
  return word == "-it" || word == "-ti" ? "-i" : shell_word(word);
}

bool could_name_session(std::string_view word) {
  return !word.empty() && word.front() != '-' && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
  });
}

/// The words for the form of a notebook: of "execute --inplace x.ipynb" the file. The options are
/// another tool's, and "jupyter execute x.ipynb" has a command of its own.
std::string notebook_words(std::span<const char* const> words) {
  std::string files;
  for (const char* const word : words)
    if (std::string_view(word).ends_with(".ipynb"))
      files += (files.empty() ? "" : " ") + shell_word(word);
  return files;
}

/// What stands for a session in front of the words of a form; empty where they may name one.
std::string missing_name(const CommandHabit& habit, std::span<const char* const> words) {
  constexpr std::string_view kSwitches[] = {"-it", "-ti", "-i", "-t", "-d"};
  if (words.empty() || !std::string_view(habit.usual).starts_with("NAME")) return {};
  const auto first = std::ranges::find_if(words, [&](std::string_view word) {
    return std::ranges::find(kSwitches, word) == std::end(kSwitches);
  });
  if (first == words.end()) return "NAME ";
  const std::string_view word = *first;
  if (word == "-c") return "NAME ";
  if (word.starts_with('-') || could_name_session(word)) return {};
  // eval 'print(1)'
  const bool is_code = std::string_view(habit.form) == "sbx session eval {}" && words.size() == 1 &&
                       ::access(*first, F_OK) != 0;
  return is_code ? "NAME -c " : "NAME ";
}

/// "sandbox list": what another tool calls so is a session here.
std::string session_habit(std::span<const char* const> arguments) {
  constexpr auto kOthers = std::to_array<std::pair<std::string_view, const char*>>(
      {{"ls", "list"}, {"ps", "list"}, {"kill", "stop"}, {"rm", "stop"}});
  std::vector<const char*> words(arguments.begin(), arguments.end());
  words.front() = "session";
  for (const auto& [theirs, ours] : kOthers)
    if (theirs == words[1]) words[1] = ours;
  if (std::string form = command_habit(words); !form.empty()) return form;
  std::string form = "sbx session";
  for (const char* const word : std::span(words).subspan(1)) form += " " + shell_word(word);
  return form;
}

}  // namespace

std::string copy_habit(std::span<const std::string> words) {
  if (words.size() != 2) return {};
  const auto inside = [](const std::string& word) {  // SESSION:PATH
    const auto colon = word.find(':');
    const bool is_one = colon != std::string::npos && could_name_session(word.substr(0, colon));
    return is_one ? std::pair(word.substr(0, colon), word.substr(colon + 1))
                  : std::pair<std::string, std::string>();
  };
  const auto [from, source] = inside(words[0]);
  const auto [to, target] = inside(words[1]);
  if (from.empty() == to.empty()) return {};
  if (!to.empty())
    return fmt::format("sbx session put {} {}{}", to, shell_word(words[0]),
                       target.empty() ? "" : " " + shell_word(target));
  const bool is_here = words[1] == "." || words[1] == "./";
  return fmt::format("sbx session get {} {}{}", from, shell_word(source.empty() ? "." : source),
                     is_here ? "" : " --out " + shell_word(words[1]));
}

std::string policy_habit(std::string_view value) {
  if (const auto slash = value.find("/tcp"); slash != std::string_view::npos)
    value = value.substr(0, slash);
  const auto inner = value.rfind(':');
  if (inner == std::string_view::npos || inner + 1 == value.size() ||
      !std::ranges::all_of(value, [](char c) { return is_digit(c) || c == ':' || c == '.'; }))
    return {};
  const std::string_view outside = value.substr(0, inner);
  const auto outer = outside.rfind(':');
  return fmt::format(
      "-p names a policy; --set 'network.publish=[\"127.0.0.1:{}:{}\"]' publishes a port",
      outer == std::string_view::npos ? outside : outside.substr(outer + 1),
      value.substr(inner + 1));
}

std::string command_habit(std::span<const char* const> arguments) {
  constexpr auto kSessions =
      std::to_array<std::string_view>({"sandbox", "sandboxes", "container", "containers"});
  if (arguments.empty()) return {};
  if (arguments.size() > 1 && std::ranges::find(kSessions, arguments[0]) != kSessions.end())
    return session_habit(arguments);
  for (const CommandHabit& habit : kCommandHabits) {
    if (!names_command(habit, arguments)) continue;
    const auto words = arguments.subspan(habit.words.contains(' ') ? 2 : 1);
    if (habit.words.ends_with("cp"))
      if (std::string form = copy_habit(std::vector<std::string>(words.begin(), words.end()));
          !form.empty())
        return form;
    std::string rest = missing_name(habit, words);
    if (!rest.empty()) rest.pop_back();
    for (const char* const word : words) rest += (rest.empty() ? "" : " ") + without_tty(word);
    if (std::string_view(habit.form).contains("--cells {}")) rest = notebook_words(words);
    if (habit.words == "kill" && rest.starts_with("r_")) return "sbx stop " + rest;  // of a run
    if (rest.empty() && std::string_view(habit.usual).starts_with("sbx ")) return habit.usual;
    return fmt::format(fmt::runtime(habit.form), rest.empty() ? habit.usual : rest);
  }
  return {};
}

std::string option_habit(std::string_view command, std::string_view option) {
  for (const SessionHabit& habit : kSessionHabits)
    if (command.starts_with(habit.commands) && lists(habit.options, option)) return habit.form;
  const bool is_exec = command == "session exec" || command == "session eval";
  if (command != "run" && !is_exec && command != "session start") return {};
  for (const OptionHabit& habit : kOptionHabits) {
    if (!lists(habit.options, option)) continue;
    if (!is_exec) return habit.of_run;
    return habit.of_exec != nullptr ? habit.of_exec
                                    : fmt::format(fmt::runtime(kAtTheStart), habit.of_run);
  }
  return {};
}

}  // namespace sbx::cli
