#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include "base/control.hpp"
#include "plan/filter/assembler.hpp"
#include "plan/filter/filter.hpp"
#include "plan/filter/ruling.hpp"
#include "plan/filter/table.hpp"
#include "plan/filter/tree.hpp"

namespace sbx::plan {
namespace {

/// Numbers from `start` to the start of the next range share one decision.
struct Range {
  std::uint32_t start = 0;
  std::uint32_t value = 0;     ///< the BPF return value
  const Call* call = nullptr;  ///< a single call whose arguments decide
  bool own_exec = false;       ///< notified, except for the payload's own execve
};

/// BPF return values for actions.
class Answers {
 public:
  Answers(const policy::Syscalls& syscalls, const FilterContext& context)
      : listener_(context.listener),
        kills_(syscalls.denied.value == policy::DeniedCall::kill),
        noted_(context.noted),
        served_(context.served) {}

  [[nodiscard]] std::uint32_t operator()(const Call& call, const Action& action) const {
    switch (action.kind) {
      case Action::Kind::allow:
        if (std::ranges::find(served_, call.number) != served_.end())
          return listener_ ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM;
        return listener_ && std::ranges::find(noted_, call.number) != noted_.end()
                   ? SECCOMP_RET_USER_NOTIF
                   : SECCOMP_RET_ALLOW;
      case Action::Kind::quiet:
        return SECCOMP_RET_ERRNO | action.error;
      case Action::Kind::kill:
        return SECCOMP_RET_KILL_PROCESS;
      case Action::Kind::deny:
        if (listener_) return SECCOMP_RET_USER_NOTIF;
        return kills_ ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | action.error;
    }
    return SECCOMP_RET_KILL_PROCESS;
  }

 private:
  bool listener_;
  bool kills_;  ///< with a listener the supervisor ends the run instead
  const std::vector<int>& noted_;
  const std::vector<int>& served_;
};

std::vector<Range> make_ranges(const Ruling& ruling, const Answers& answers) {
  std::vector<Range> ranges;
  ranges.reserve(192);
  const auto add = [&](std::uint32_t start, std::uint32_t value, const Call* call) {
    const bool same = !ranges.empty() && call == nullptr && ranges.back().call == nullptr &&
                      ranges.back().value == value;
    if (!same) ranges.push_back({start, value, call});
  };
  constexpr std::uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;
  std::uint32_t next = 0;
  for (const Call& call : calls()) {
    if (call.number != next) add(next, kUnknown, nullptr);
    const Ruling::Verdict verdict = ruling.verdict(call);
    const bool own_exec = !verdict.conditional && call.number == SYS_execve &&
                          answers(call, verdict.action) == SECCOMP_RET_USER_NOTIF;
    add(call.number, verdict.conditional ? 0 : answers(call, verdict.action),
        verdict.conditional || own_exec ? &call : nullptr);
    ranges.back().own_exec = own_exec;
    next = call.number + 1U;
  }
  add(next, kUnknown, nullptr);
  return ranges;
}

class Compiler {
 public:
  Compiler(const Ruling& ruling, const Answers& answers)
      : ruling_(ruling), answers_(answers), ranges_(make_ranges(ruling, answers)) {}

  /// The program, or nothing when it is too long.
  [[nodiscard]] std::vector<sock_filter> run() && {
    using Label = Assembler::Label;
    Label node = search(0, ranges_.size());
    const Label foreign = out_.give_back(SECCOMP_RET_KILL_PROCESS);
    const Label unknown = out_.give_back(SECCOMP_RET_ERRNO | ENOSYS);
    node = out_.jump_if(BPF_JGE, kForeignAbiStart, foreign, node);
    // -1 is not a call of any ABI: a tracer sets it to skip a call, and the kernel answers ENOSYS.
    node = out_.jump_if(BPF_JEQ, UINT32_MAX, unknown, node);
    node = out_.load(offsetof(seccomp_data, nr), node);
    node = out_.jump_if(BPF_JEQ, kAuditArch, node, foreign);
    (void)out_.load(offsetof(seccomp_data, arch), node);
    if (out_.overflowed()) return {};
    return std::move(out_).finish();
  }

 private:
  // A binary search over ranges_[first, last), with the number in A.
  Assembler::Label search(std::size_t first, std::size_t last) {
    if (last - first == 1) return decide(ranges_[first]);
    const std::size_t middle = first + (last - first) / 2;
    const Assembler::Label above = search(middle, last);
    const Assembler::Label below = search(first, middle);
    return out_.jump_if(BPF_JGE, ranges_[middle].start, above, below);
  }

  Assembler::Label decide(const Range& range) {
    if (range.call == nullptr) return out_.give_back(range.value);
    tree_.clear();
    if (range.own_exec) {
      const Tree::Id notified = tree_.leaf({.index = 0});
      const Tree::Id own = tree_.leaf({.index = 1});
      const Tree::Id exec =
          tree_.branch({.argument = 3, .value = control::kOwnExec}, own, notified);
      return out_.tree(tree_, exec, [](const Action& action) -> std::uint32_t {
        return action.index == 1 ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF;
      });
    }
    const Tree::Id root = ruling_.tree(tree_, *range.call);
    return out_.tree(tree_, root, [&](const Action& action) -> std::uint32_t {
      // The payload's own execve must pass; a rule on execve's arguments leaves no argument to
      // recognise it by.
      if (range.call->number == SYS_execve && action.kind == Action::Kind::allow)
        return SECCOMP_RET_ALLOW;
      return answers_(*range.call, action);
    });
  }

  const Ruling& ruling_;
  const Answers& answers_;
  std::vector<Range> ranges_;
  Tree tree_;
  Assembler out_;
};

Result<std::vector<sock_filter>> compile_rules(const policy::Syscalls& syscalls,
                                               const FilterContext& context,
                                               std::size_t rule_count) {
  const Ruling ruling = SBX_TRY(Ruling::resolve(syscalls, context, rule_count));
  const Answers answers(syscalls, context);
  return Compiler(ruling, answers).run();
}

// Finds the first rule that doesn't fit, for the message.
std::unexpected<Error> too_long(const policy::Syscalls& syscalls, const FilterContext& context) {
  std::size_t fits = 0;
  std::size_t too_many = syscalls.rules.size();
  while (too_many - fits > 1) {
    const std::size_t middle = fits + (too_many - fits) / 2;
    const auto program = compile_rules(syscalls, context, middle);
    (program && !program->empty() ? fits : too_many) = middle;
  }
  SBX_ASSERT(too_many > 0);
  const auto& rule = syscalls.rules[too_many - 1];
  return fail(Error{.kind = ErrorKind::policy,
                    .code = "filter-too-long",
                    .message = "the rule for \"" + rule.value.name +
                               "\" does not fit the kernel's 4096 instructions",
                    .origin = rule.origin,
                    .hint = "merge rules of one call into one with op = \"in\", or allow or deny "
                            "the call as a whole"});
}

}  // namespace

Result<Filter> compile_filter(const policy::Syscalls& syscalls, const FilterContext& context) {
  Filter filter;
  filter.program = SBX_TRY(compile_rules(syscalls, context, SIZE_MAX));
  if (filter.program.empty()) return too_long(syscalls, context);
  filter.notifies = std::ranges::any_of(filter.program, [](const sock_filter& instruction) {
    return BPF_CLASS(instruction.code) == BPF_RET && instruction.k == SECCOMP_RET_USER_NOTIF;
  });
  filter.syscalls = syscalls;
  filter.context = context;
  return filter;
}

}  // namespace sbx::plan
