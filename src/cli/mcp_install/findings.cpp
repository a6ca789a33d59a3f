#include "cli/mcp_install/findings.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/mcp_install/look.hpp"
#include "cli/mcp_install/registration.hpp"
#include "plan/program/lookup.hpp"

namespace sbx::cli::mcp_install {
namespace {

doctor::Finding finding_of(const Client& client, const std::string& program,
                           const Result<Seen>& seen) {
  doctor::Finding finding{.name = client.title, .fact = program.empty() ? "not on PATH" : program};
  if (!seen) {
    finding.fact += "; " + seen.error().message;
    return finding;
  }
  if (!starts_server(seen->words)) {
    finding.fact += "; does not start sbx mcp: sbx mcp install " + std::string(client.name);
    return finding;
  }
  finding.fact += "; starts sbx mcp: " + seen->path;
  if (seen->denies_shell) {
    finding.fact += "; its own shell is denied";
  } else if (*client.shell_key != '\0') {
    finding.state = doctor::State::weaker;
    finding.consequence = "its own shell runs commands on the host";
    finding.cure = fmt::format("sbx mcp install {} --replace-shell", client.name);
  }
  return finding;
}

}  // namespace

std::vector<doctor::Finding> examine_clients(const host::Host& host) {
  const plan::Lookup lookup(*host.files, "", host.path);
  std::vector<doctor::Finding> findings;
  for (const Client& client : clients()) {
    const std::string program = lookup.find(client.command).value_or("");
    const auto seen = look(client, "sbx", Scope::user, host);
    if (!program.empty() || (seen && !seen->words.empty()))
      findings.push_back(finding_of(client, program, seen));
  }
  return findings;
}

}  // namespace sbx::cli::mcp_install
