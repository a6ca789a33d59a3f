#include "cli/mcp_install/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <sbx/outcome.hpp>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/mcp_install/look.hpp"
#include "cli/mcp_install/trial.hpp"
#include "cli/mcp_install/wanted.hpp"
#include "cli/mcp_install/words.hpp"
#include "cli/usage.hpp"

namespace sbx::cli::mcp_install {
namespace {

Scope scope_of(const Invocation& typed) {
  return typed.install.for_project ? Scope::project : Scope::user;
}

Result<const Client*> client_of(const Invocation& typed) {
  if (typed.operands.size() != 1)
    return usage("usage", fmt::format("\"sbx {}\" needs the name of one client", typed.command),
                 "one of " + client_names());
  if (const Client* const client = find_client(typed.operands.front())) return client;
  return usage("bad-value", fmt::format("unknown client \"{}\"", printable(typed.operands.front())),
               "one of " + client_names() + "; --print without a client is for others");
}

/// A file that sbx does not reach, as the user would name it.
Location shown_location(const SettingsFile& file, const host::Host& host) {
  const auto set = host.environment.find(file.variable);
  if (set == host.environment.end() || set->second.empty()) return {"~", file.below_home};
  return {set->second, file.below_variable};
}

/// For --print, and for a user whose files sbx leaves alone.
std::vector<File> shown_files(const Client& client, Scope scope, const host::Host& host) {
  if (auto files = files_of(client, scope, host)) return std::move(*files);
  const Location registering = shown_location(client.registering, host);
  const Location settings = shown_location(client.settings, host);
  if (registering.path() == settings.path())
    return {{.location = registering, .registers = true, .permits = true}};
  return {{.location = settings, .permits = true}, {.location = registering, .registers = true}};
}

int print_paste(const Client& client, const Registration& wanted, Scope scope,
                const host::Host& host) {
  return print(paste_words(client, shown_files(client, scope, host), wanted));
}

Result<std::string> install(const Client& client, const Registration& wanted, Scope scope,
                            const host::Host& host) {
  const auto files = SBX_TRY(files_of(client, scope, host));
  auto edits = SBX_TRY(edits_of(client, files, wanted, Change::install));
  SBX_TRY(write_all(edits));
  return installed_words(client, wanted, scope, edits);
}

/// In the other order: what permits less goes last.
Result<std::string> remove(const Client& client, const Registration& wanted, Scope scope,
                           const host::Host& host) {
  auto files = SBX_TRY(files_of(client, scope, host));
  std::ranges::reverse(files);
  auto edits = SBX_TRY(edits_of(client, files, wanted, Change::remove));
  SBX_TRY(write_all(edits));
  return removed_words(client, wanted, edits);
}

Status check_shell(const Client& client, const Registration& wanted) {
  if (!wanted.replaces_shell || *client.shell_key != '\0') return {};
  return usage("bad-value",
               fmt::format("sbx knows no setting of {} that denies its own shell", client.title),
               "without --replace-shell, and deny it by hand");
}

/// Which program a registration starts: this one, or what it is. A project's file may name any.
Status check_program(const std::vector<std::string>& words) {
  const auto program = sys::open_at(AT_FDCWD, words.front(), O_PATH);
  const auto own = sys::open_at(AT_FDCWD, "/proc/self/exe", O_PATH);
  const bool is_own = program && own && words.front().starts_with('/') &&
                      held::identity_of(program->get()) == held::identity_of(own->get());
  if (!is_own)
    return usage("not-registered",
                 fmt::format("it starts '{}', which is not this sbx", printable(words.front())),
                 "install it again, or check it with that program");
  (void)SBX_TRY(server_line({words.begin() + (words.size() > 1 ? 2 : 1), words.end()}));
  if (words.size() > 1 && words[1] == "mcp") return {};
  return usage("not-registered", "it does not start \"sbx mcp\"", "install it again");
}

std::string shell_line(const Client& client, const Seen& seen) {
  if (*client.shell_key == '\0') return "its own shell: sbx knows no setting that denies it\n";
  if (seen.denies_shell)
    return fmt::format("its own shell: denied by {} in {}\n", client.shell_key,
                       printable(seen.shell_path));
  return fmt::format(
      "its own shell: not denied, and runs commands on the host; sbx mcp install {} "
      "--replace-shell\n",
      client.name);
}

/// `said`: what is known before something goes wrong.
Status check(const Client& client, const Invocation& typed, const host::Host& host,
             std::string& said) {
  const Scope scope = scope_of(typed);
  const Seen seen = SBX_TRY(look(client, typed.install.name, scope, host));
  if (seen.words.empty() || seen.is_off)
    return usage(
        "not-registered",
        fmt::format("'{}' {} a server \"{}\"", printable(seen.path),
                    seen.is_off ? "switches off" : "does not register", typed.install.name),
        fmt::format("sbx mcp install {}", client.name));
  said += fmt::format("{} starts \"{}\" as: {}\n", client.title, typed.install.name,
                      command_line(seen.words));
  said += shell_line(client, seen);
  SBX_TRY(check_program(seen.words));
  if (scope == Scope::project && !typed.bring_out.yes)
    return usage("not-registered", "the project's own file says so: nothing was started",
                 "read the line above; --yes starts it");
  const TrialAnswer answer = SBX_TRY(try_server(seen.words));
  said +=
      fmt::format("it offers {}\n", printable(fmt::format("{}", fmt::join(answer.tools, ", "))));
  said += fmt::format("1+1 {}: {}\n", answer.is_two ? "is 2" : "was not answered by 2",
                      printable(answer.first_line));
  if (answer.is_two) return {};
  return usage("no-answer", "the server does not run code",
               "what kept it from that is above; sbx doctor looks at the machine");
}

}  // namespace

int install_command(const Invocation& typed) {
  const auto host = host::probe_caller();
  if (!host) return complain(typed, host.error());
  const bool is_generic = typed.operands.empty() && typed.install.prints;
  const auto client = is_generic ? Result<const Client*>(nullptr) : client_of(typed);
  if (!client) return complain(typed, client.error());
  const auto wanted = wanted_of(typed, *host);
  if (!wanted) return complain(typed, wanted.error());
  if (is_generic) return print(generic_text(*wanted));
  if (const Status known = check_shell(**client, *wanted); !known)
    return complain(typed, known.error());
  const Scope scope = scope_of(typed);
  if (typed.install.prints) return print_paste(**client, *wanted, scope, *host);
  const auto done = install(**client, *wanted, scope, *host);
  if (done) return print_fitted(*done);
  const int status = complain(typed, done.error(), kFindings);
  // Nothing was written: the user can do it.
  return print_paste(**client, *wanted, scope, *host) == kDone ? status : exit_status::kCouldNot;
}

int remove_command(const Invocation& typed) {
  const auto host = host::probe_caller();
  if (!host) return complain(typed, host.error());
  const auto client = client_of(typed);
  if (!client) return complain(typed, client.error());
  if (const Status named = check_server_name(typed.install.name); !named)
    return complain(typed, named.error());
  const Registration wanted{.name = typed.install.name,
                            .replaces_shell = typed.install.replaces_shell};
  if (const Status known = check_shell(**client, wanted); !known)
    return complain(typed, known.error());
  const auto done = remove(**client, wanted, scope_of(typed), *host);
  return done ? print_fitted(*done) : complain(typed, done.error(), kFindings);
}

int check_command(const Invocation& typed) {
  const auto host = host::probe_caller();
  if (!host) return complain(typed, host.error());
  const auto client = client_of(typed);
  if (!client) return complain(typed, client.error());
  if (const Status named = check_server_name(typed.install.name); !named)
    return complain(typed, named.error());
  std::string said;
  const Status done = check(**client, typed, *host, said);
  const int printed = print(said);
  return done ? printed : complain(typed, done.error(), kFindings);
}

}  // namespace sbx::cli::mcp_install
