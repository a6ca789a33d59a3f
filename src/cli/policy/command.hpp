#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/invocation.hpp"
#include "host/host.hpp"
#include "policy/load.hpp"

/// `sbx policy ...`: one file for each verb. Every function returns the exit status.
namespace sbx::cli {

[[nodiscard]] int policy_command(const Invocation& typed);

namespace policy_verb {

/// The context of the policies of one invocation.
struct Surroundings {
  host::Host host;
  policy::LoadContext context;
};
[[nodiscard]] Result<Surroundings> look();
/// The policy that an operand names. A finding about the name itself blames no option: none was
/// typed.
[[nodiscard]] std::expected<policy::Policy, policy::Findings> load_operand(
    const std::string& operand, const std::vector<policy::Override>& overrides,
    const policy::LoadContext& context);
/// "limits" of "limits.memory".
[[nodiscard]] std::string_view section_of(std::string_view key);

using cli::complain;
/// Says all of them.
int complain(const Invocation& typed, const policy::Findings& findings);
int usage(const Invocation& typed, std::string message, std::string hint = {});

int list(const Invocation& typed);
int show(const Invocation& typed);
int check(const Invocation& typed);
int explain(const Invocation& typed);
int diff(const Invocation& typed);
int schema(const Invocation& typed);
int init(const Invocation& typed);
int audit(const Invocation& typed);

}  // namespace policy_verb
}  // namespace sbx::cli
