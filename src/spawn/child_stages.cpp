// The order of the child's stages, for each tier. Child-safe: see child.cpp.

#include "spawn/child_stages.hpp"

#include <array>

namespace sbx::child {
namespace {

/// Most stages only read the program.
template <auto kFunction>
void stage(Program& program) {
  kFunction(program);
}

template <std::size_t kCount, class... Last>
consteval auto then(const std::array<StageFunction, kCount>& first, Last... last) {
  std::array<StageFunction, kCount + sizeof...(last) + 1> all{};  // null at the end
  std::size_t i = 0;
  for (const StageFunction each : first) all[i++] = each;
  ((all[i++] = last), ...);
  return all;
}

/// Before wait_for_go() nothing needs ids: the supervisor writes the id maps meanwhile. The
/// parent-death signal comes twice, because the change of ids clears it.
constexpr std::array<StageFunction, 16> kBuild{
    stage<drop_supervisor_ends>,
    stage<die_with_supervisor>,
    stage<join_groups>,
    stage<limit_cpus>,
    stage<name_host>,
    stage<make_network>,
    stage<wait_for_go>,
    stage<take_identity>,
    stage<wipe_arguments>,
    stage<refuse_dumps>,
    stage<die_with_supervisor>,
    build_root,
    open_terminal,
    hand_over_descriptors,
    stage<wait_for_network>,
    stage<wait_for_copies>,
};
constexpr auto kRun = then(kBuild, run_command);
constexpr auto kHolder = then(kBuild, serve_calls);

/// The call's pidfd is its first message. The second wall's rules are those of the sandbox and of
/// the mounts made here.
constexpr StageFunction kCall[] = {
    stage<come_before_holder>,
    stage<refuse_dumps>,
    stage<report_call>,
    stage<die_with_supervisor>,
    stage<wait_to_be_placed>,
    stage<join_groups>,
    renew_mounts,
    keep_processes,
    hold_mounts,
    make_wall_ahead,
    stage<lower_own_capabilities>,
    nullptr,
};
constexpr StageFunction kBegun[] = {
    stage<raise_own_capabilities>, open_terminal, hand_over_descriptors, run_command, nullptr,
};

/// Without namespaces and mounts. No parent-death signal: the keeper has to end the others first,
/// and sees the end of the control socket. Root's rights go before anything is done for the
/// program; CPUs and control groups are set before that. The second comes when nothing of the
/// keeper can be read any more, and before there is anything to end. With the descriptors, of which
/// there are none, the supervisor begins to make the private directory: what needs it comes last.
constexpr StageFunction kKeeper[] = {
    stage<drop_supervisor_ends>,
    hand_over_descriptors,
    stage<join_groups>,
    stage<limit_cpus>,
    stage<wait_for_go>,
    stage<gather_orphans>,
    stage<become_keeper>,
    stage<wipe_arguments>,
    stage<refuse_dumps>,
    start_second,
    prepare_second_wall,
    stage<wait_for_copies>,
    run_command,
    nullptr,
};

/// The same without the right to change ids.
constexpr StageFunction kConfined[] = {
    stage<drop_supervisor_ends>,
    hand_over_descriptors,
    stage<join_groups>,
    stage<limit_cpus>,
    stage<wait_for_go>,
    stage<gather_orphans>,
    confine_keeper,
    stage<wipe_arguments>,
    stage<refuse_dumps>,
    start_second,
    prepare_second_wall,
    stage<wait_for_copies>,
    run_command,
    nullptr,
};

/// Limits come after the privileges that would lift them; the filter, which refuses what the others
/// need, comes last.
constexpr StageFunction kPayload[] = {
    stage<own_session>,
    stage<connect_streams>,
    stage<mark_descriptors>,
    stage<enter_working_directory>,
    stage<drop_privileges>,
    stage<enter_call_directory>,
    stage<set_limits>,
    stage<raise_second_wall>,
    stage<reset_signals>,
    execute_program,
    nullptr,
};

/// The change of uid comes before anything is opened by name.
constexpr StageFunction kOwnUid[] = {
    stage<own_session>,
    stage<connect_streams>,
    stage<mark_descriptors>,
    stage<take_own_uid>,
    stage<enter_working_directory>,
    stage<drop_capabilities>,
    stage<set_limits>,
    stage<raise_second_wall>,
    stage<reset_signals>,
    execute_program,
    nullptr,
};
constexpr StageFunction kSameUid[] = {
    stage<own_session>,       stage<connect_streams>,
    stage<mark_descriptors>,  stage<enter_working_directory>,
    stage<drop_capabilities>, stage<set_limits>,
    stage<raise_second_wall>, stage<reset_signals>,
    execute_program,          nullptr,
};
/// A plan without namespaces holds no calls.
constexpr StageFunction kNone[] = {nullptr};

/// In the order of SBX_TIERS.
constexpr StageTables kTables[] = {
    {.run = kRun.data(),
     .holder = kHolder.data(),
     .call = kCall,
     .begun = kBegun,
     .payload = kPayload},
    {.run = kKeeper, .holder = kNone, .call = kNone, .begun = kNone, .payload = kOwnUid},
    {.run = kConfined, .holder = kNone, .call = kNone, .begun = kNone, .payload = kSameUid},
};
static_assert(sizeof kTables / sizeof *kTables == kTierCount);

}  // namespace

const StageTables& tables_of(TierKind tier) {
  return kTables[static_cast<std::size_t>(tier)];
}

void walk(const StageFunction* table, Program& program) {
  for (; *table != nullptr; ++table) (*table)(program);
}

}  // namespace sbx::child
