#include <linux/sched.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/letters.hpp"
#include "plan/filter/filter.hpp"
#include "plan/filter/guards.hpp"
#include "plan/filter/ruling.hpp"
#include "plan/filter/symbols.hpp"
#include "plan/filter/table.hpp"
#include "plan/filter/tree.hpp"

namespace sbx::plan {
namespace {

using Arguments = const std::uint64_t (&)[6];

constexpr std::uint32_t kFileType = 0170000;  // S_IFMT

std::uint32_t word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

std::string hex(std::uint32_t value) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "0x%x", value);  // at most ten characters
  return text.data();
}

std::string octal(std::uint32_t value) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "0%o", value);  // at most twelve characters
  return text.data();
}

/// The constant's name, otherwise the number.
std::string constant(std::string_view prefix, std::uint32_t value) {
  const std::string_view name = symbol_name(prefix, value);
  return name.empty() ? std::to_string(value) : std::string(name);
}

std::string_view syscall_base_name(policy::SyscallBase base) {
  switch (base) {
    case policy::SyscallBase::none:
      return "none";
    case policy::SyscallBase::minimal:
      return "minimal";
    case policy::SyscallBase::default_:
      return "default";
  }
  return "default";
}

std::string_view protocol_prefix(Arguments arguments) {
  return word(arguments[0]) == AF_NETLINK ? "NETLINK_" : "IPPROTO_";
}

// Builds the texts of one refusal.
class Teller {
 public:
  Teller(const policy::Syscalls& syscalls, const FilterContext& context, const Call& call,
         Arguments arguments, const Action& action)
      : syscalls_(syscalls),
        context_(context),
        call_(call),
        arguments_(arguments),
        action_(action) {}

  [[nodiscard]] Refusal tell() const {
    return {{.what = what(),
             .count = 1,
             .process = {},
             .rule = rule(),
             .allow_with = allow_with(),
             .risk = risk()},
            action_.error};
  }

 private:
  [[nodiscard]] std::uint32_t argument(unsigned index) const { return word(arguments_[index]); }

  [[nodiscard]] std::string what() const {
    std::string name = call_.name;
    switch (action_.cause) {
      case Cause::socket_family:
      case Cause::socket_unix:
      case Cause::socketpair_family:
        return name + "(" + constant("AF_", argument(0)) + ")";
      case Cause::socket_type:
        return name + "(" + constant("AF_", argument(0)) + ", " +
               constant("SOCK_", argument(1) & 0xf) + ")";
      case Cause::socket_protocol:
        return name + "(" + constant("AF_", argument(0)) + ", " +
               constant(protocol_prefix(arguments_), argument(2)) + ")";
      case Cause::namespaces:
        return name + "(" + flag_names("CLONE_NEW", argument(0) & kNamespaceFlags) + ")";
      case Cause::new_process:
        return name + " (a new process)";
      case Cause::terminal_input:
        return name + "(" + constant("TIOC", argument(1)) + ")";
      case Cause::prctl_option:
      case Cause::unreadable:
        return name + "(" + option() + ")";
      case Cause::other_process:
        return name + "(pid " + std::to_string(static_cast<std::int32_t>(argument(0))) + ")";
      case Cause::personality:
        return name + "(" + hex(argument(0)) + ")";
      case Cause::second_listener:
        return name + "(SECCOMP_FILTER_FLAG_NEW_LISTENER)";
      case Cause::set_id_mode:
        return name + "(" + octal(mode() & ~kFileType) + ")";
      case Cause::special_file:
        return name + "(" + constant("S_IF", mode() & kFileType) + ")";
      case Cause::whiteout:
        return name + "(RENAME_WHITEOUT)";
      case Cause::rule:
        return name + rule_argument();
      case Cause::admitted:
      case Cause::not_in_base:
      case Cause::deny_entry:
      case Cause::quiet_table:
      case Cause::unknown_number:
      case Cause::foreign_abi:
      case Cause::affinity_budget:
      case Cause::polled_memory:
      case Cause::polled_writes:
      case Cause::unseen_mode:
      case Cause::outer_proc:
      case Cause::outside:
        return name;
    }
    return {};
  }

  [[nodiscard]] std::uint32_t mode() const { return argument(mode_argument(call_)) & 0xffff; }

  [[nodiscard]] std::string option() const {
    constexpr std::uint32_t kPrSchedCore = 62;
    return argument(0) == kPrSchedCore ? "PR_SCHED_CORE" : constant("PR_", argument(0));
  }

  /// "(argument 1: 0x10)" when a conditional rule decided.
  [[nodiscard]] std::string rule_argument() const {
    const policy::SyscallRule& rule = syscalls_.rules[action_.index].value;
    if (!rule.has_condition) return {};
    std::array<char, 48> text{};
    (void)std::snprintf(
        text.data(), text.size(), "(argument %d: 0x%llx)", rule.argument,
        static_cast<unsigned long long>(arguments_[rule.argument]));  // fits for the widest values
    return text.data();
  }

  /// Where the program's files lie on the host.
  [[nodiscard]] std::string place_on_host() const {
    return context_.outside_namespaces ? "the program's own directory" : "a live grant";
  }

  [[nodiscard]] std::string base_place() const { return " (" + syscalls_.base.origin.text() + ")"; }

  [[nodiscard]] std::string rule() const {
    const std::string name = double_quoted(call_.name);
    switch (action_.cause) {
      case Cause::not_in_base:
        return "not in syscalls.base = " + double_quoted(syscall_base_name(syscalls_.base.value)) +
               base_place();
      case Cause::deny_entry:
        return deny_entry_text();
      case Cause::new_process:
        return action_.index == kNoIndex
                   ? "not in syscalls.base = " +
                         double_quoted(syscall_base_name(syscalls_.base.value)) + base_place()
                   : deny_entry_text();
      case Cause::rule:
        return rule_text();
      case Cause::quiet_table:
        return name + " is answered quietly: " + call_.reason;
      case Cause::socket_unix:
        return "network.mode = \"host\" on a kernel without Landlock scopes";
      case Cause::affinity_budget:
        return "limits.cpus is enforced by the affinity here";
      case Cause::polled_memory:
        return "limits.memory is enforced by polling here";
      case Cause::polled_writes:
      case Cause::unreadable:
        return "limits.disk is enforced in live grants by looking at the processes";
      case Cause::set_id_mode:
        return place_on_host() + " has no set-user-ID or set-group-ID files";
      case Cause::unseen_mode:
        return "openat2 hides the mode of a new file, which can be in " + place_on_host();
      case Cause::special_file:
        return place_on_host() + " has no FIFOs, sockets and devices";
      case Cause::whiteout:
        return place_on_host() + " has no devices";
      case Cause::outside:
        return "isolation = \"landlock\": the program is in the machine's own namespaces";
      case Cause::outer_proc:
        return "/proc is the caller's here, and a watch on it tells what other processes do";
      case Cause::admitted:
      case Cause::unknown_number:
      case Cause::foreign_abi:
      case Cause::socket_family:
      case Cause::socket_type:
      case Cause::socket_protocol:
      case Cause::socketpair_family:
      case Cause::namespaces:
      case Cause::terminal_input:
      case Cause::prctl_option:
      case Cause::other_process:
      case Cause::personality:
      case Cause::second_listener:
        return guard_text() + base_place();
    }
    return {};
  }

  [[nodiscard]] std::string deny_entry_text() const {
    const auto& entry = syscalls_.deny[action_.index];
    return "syscalls.deny = [" + double_quoted(entry.value) + "] (" + entry.origin.text() + ")";
  }

  [[nodiscard]] std::string rule_text() const {
    const auto& rule = syscalls_.rules[action_.index];
    std::string text =
        "syscalls.rule for " + double_quoted(rule.value.name) + " (" + rule.origin.text() + ")";
    if (!rule.value.reason.empty()) text += ": " + rule.value.reason;
    return text;
  }

  [[nodiscard]] std::string guard_text() const {
    switch (action_.cause) {
      case Cause::socket_family:
        return "sockets are of family UNIX, INET, INET6 or NETLINK";
      case Cause::socket_type:
        return "internet sockets are of type STREAM or DGRAM";
      case Cause::socket_protocol:
        return "sockets are of protocol TCP, UDP or NETLINK_ROUTE";
      case Cause::socketpair_family:
        return "socket pairs are of family UNIX";
      case Cause::namespaces:
        return "no policy admits new namespaces";
      case Cause::terminal_input:
        return "typing into a terminal and line disciplines are left out";
      case Cause::prctl_option:
        return "this option is left out";
      case Cause::other_process:
        return "a process may set limits for itself only (pid 0)";
      case Cause::personality:
        return "only the default personality is admitted";
      case Cause::second_listener:
        return "filters with a listener are left out";
      case Cause::admitted:
      case Cause::not_in_base:
      case Cause::deny_entry:
      case Cause::rule:
      case Cause::quiet_table:
      case Cause::unknown_number:
      case Cause::foreign_abi:
      case Cause::socket_unix:
      case Cause::new_process:
      case Cause::affinity_budget:
      case Cause::polled_memory:
      case Cause::polled_writes:
      case Cause::unreadable:
      case Cause::set_id_mode:
      case Cause::unseen_mode:
      case Cause::special_file:
      case Cause::whiteout:
      case Cause::outer_proc:
      case Cause::outside:
        return double_quoted(call_.name) + " is left out";
    }
    return {};
  }

  [[nodiscard]] std::string allow_with() const {
    switch (action_.cause) {
      case Cause::not_in_base:
        return text_of(call_.group).needs_privilege ? std::string() : allow_name(call_.name);
      case Cause::quiet_table:
        return call_.decision.standing == Standing::quiet && !text_of(call_.group).needs_privilege
                   ? allow_name(call_.name)
                   : std::string();
      case Cause::new_process:
        return action_.index == kNoIndex ? allow_name("@process-spawn") : deny_without_entry();
      case Cause::deny_entry:
        return deny_without_entry();
      case Cause::personality:
      case Cause::polled_memory:
      case Cause::unseen_mode:
      case Cause::special_file:
      case Cause::whiteout:
        return allow_name(call_.name);
      case Cause::set_id_mode:  // sbx sets modes in the program's place then, and not these
        return context_.outside_namespaces ? std::string() : allow_name(call_.name);
      case Cause::polled_writes:
        return std::string_view(call_.name) == "ioctl" ? allow_value(1, hex(argument(1)))
                                                       : allow_name(call_.name);
      case Cause::second_listener:
        return context_.listener ? std::string()
                                 : allow_name(call_.name);  // only one listener per process tree
      case Cause::socket_family:
        return family_needs_privilege() ? std::string()
                                        : allow_value(0, constant("AF_", argument(0)));
      case Cause::socket_protocol:
        return allow_value(2, constant(protocol_prefix(arguments_), argument(2)));
      case Cause::terminal_input:
        return allow_value(1, constant("TIOC", argument(1)));
      case Cause::prctl_option:
      case Cause::unreadable:
        return allow_value(0, constant("PR_", argument(0)));
      case Cause::admitted:
      case Cause::rule:
      case Cause::unknown_number:
      case Cause::foreign_abi:
      case Cause::socket_unix:
      case Cause::socket_type:
      case Cause::socketpair_family:
      case Cause::namespaces:
      case Cause::other_process:
      case Cause::affinity_budget:
      case Cause::outer_proc:
        return {};
      case Cause::outside:
        return is_internet_socket() ? "network.mode = \"host\" (--net host)"
                                    : "isolation = \"namespaces\"";
    }
    return {};
  }

  [[nodiscard]] bool is_internet_socket() const {
    return std::string_view(call_.name) == "socket" && !context_.internet_sockets &&
           (argument(0) == AF_INET || argument(0) == AF_INET6);
  }

  [[nodiscard]] bool family_needs_privilege() const {
    return argument(0) == AF_PACKET || argument(0) == AF_KEY || argument(0) == AF_XDP;
  }

  static std::string allow_name(std::string_view name) {
    return "syscalls.allow = [" + double_quoted(name) + "]";
  }

  [[nodiscard]] std::string allow_value(int argument, const std::string& value) const {
    const bool number = !value.empty() && value[0] >= '0' && value[0] <= '9';
    return "syscalls.rule = [{ name = " + double_quoted(call_.name) +
           ", when = { arg = " + std::to_string(argument) +
           ", op = \"eq\", value = " + (number ? value : double_quoted(value)) +
           " }, action = \"allow\" }]";
  }

  /// The deny list without the entry that decided: lists append, so the user must replace the list.
  [[nodiscard]] std::string deny_without_entry() const {
    std::string rest;
    for (const auto& entry : syscalls_.deny) {
      if (entry.value == syscalls_.deny[action_.index].value) continue;
      if (!rest.empty()) rest += ", ";
      rest += double_quoted(entry.value);
    }
    return "syscalls.deny = { replace = [" + rest + "] }";
  }

  [[nodiscard]] std::string risk() const {
    switch (action_.cause) {
      case Cause::socket_family:
      case Cause::socket_protocol:
      case Cause::socket_type:
        return "opens kernel code of protocols that few programs need";
      case Cause::terminal_input:
        return "the program can type into its terminal or load terminal drivers";
      case Cause::personality:
        return "weakens address randomisation of the program";
      case Cause::prctl_option:
        return "the program can misname itself or take more of a CPU than is counted";
      case Cause::polled_writes:
      case Cause::unreadable:
        return "the program can write more into live grants than limits.disk";
      case Cause::set_id_mode:
      case Cause::unseen_mode:
        return "the program can leave files on the host that run with their owner's rights";
      case Cause::special_file:
      case Cause::whiteout:
        return "the program can leave files on the host that programs there block on";
      case Cause::admitted:
      case Cause::not_in_base:
      case Cause::deny_entry:
      case Cause::rule:
      case Cause::quiet_table:
      case Cause::unknown_number:
      case Cause::foreign_abi:
      case Cause::socket_unix:
      case Cause::socketpair_family:
      case Cause::namespaces:
      case Cause::new_process:
      case Cause::other_process:
      case Cause::second_listener:
      case Cause::affinity_budget:
      case Cause::polled_memory:
      case Cause::outer_proc:
      case Cause::outside:
        return text_of(call_.group).risk;
    }
    return {};
  }

  const policy::Syscalls& syscalls_;
  const FilterContext& context_;
  const Call& call_;
  Arguments arguments_;
  const Action& action_;
};

Action decide(const Filter& filter, const Call& call, Arguments arguments) {
  const Result<Ruling> ruling = Ruling::resolve_one(filter.syscalls, filter.context, call);
  if (!ruling) return {.kind = Action::Kind::deny, .error = EPERM, .cause = Cause::not_in_base};
  Tree tree;
  const Tree::Id root = ruling->tree(tree, call);
  return tree.evaluate(root, arguments);
}

}  // namespace

Refusal Filter::explain(int number, Arguments arguments) const {
  const Call* call = find_call(number);
  if (call == nullptr) {
    return {{.what = syscall_name(number),
             .count = 1,
             .process = {},
             .rule = "not known to this version of sbx",
             .allow_with = {},
             .risk = {}},
            ENOSYS};
  }
  const Action action = decide(*this, *call, arguments);
  if (action.kind == Action::Kind::allow)
    return {{.what = call->name, .process = {}, .rule = {}, .allow_with = {}, .risk = {}}, 0};
  return Teller(syscalls, context, *call, arguments, action).tell();
}

int Filter::refusal_errno(int number, Arguments arguments) const {
  const Call* call = find_call(number);
  return call == nullptr ? ENOSYS : decide(*this, *call, arguments).error;
}

}  // namespace sbx::plan
