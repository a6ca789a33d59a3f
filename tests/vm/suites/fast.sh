# What only another kernel shows, with cgroup v2 delegated: overlays, id maps, Landlock, the budgets of control groups; as root, and as
# uid 1000 in its own group. Each kernel runs the matrix of budgets as one of them; matrix.sh runs all of it, sandbox.sh and
# escape.sh the rest. Root makes containers for the tables of sbx-security(7), for both callers.
. /src/tests/vm/guest.sh
delegate_to_tester

another_kernel() {
  check "what another kernel shows ($1, $group)" /src/tests/run-as $1 /usr/bin/python3 /src/tests/vm/inside/several.py \
    sandbox/test_verdicts.py test_full_disk_only_refuses test_disk_counts_whole_pages \
    sandbox/test_workspace.py test_replaced_and_renamed_directories_are_seen_name_by_name test_the_directory_becomes_what_the_program_saw \
    session/test_sessions.py test_calls_share_files_and_each_has_its_own_status test_memory_of_the_session_ends_the_call_that_holds_most \
    test_changes_and_diff_while_it_lives \
    session/test_attacks.py test_two_sessions_do_not_reach_each_other test_files_that_fill_the_memory_end_no_session \
    test_files_that_fill_the_disk_leave_memory_for_calls \
    escape/test_host.py test_ungranted_path_is_absent test_init_cannot_be_harmed test_abstract_socket_is_unreachable_in_the_hosts_network \
    test_write_grant_is_writable \
    escape/test_proc.py test_kernel_settings_cannot_be_written test_nested_user_namespaces_are_off_by_setting_too \
    escape/test_endings.py test_limit_counts_per_sandbox test_fork_bomb_is_stopped_by_the_limit \
    $(case $(uname -r) in 6.1.*) echo vm/inside/test_upper_directory.py ;; esac) \
    $(case $1 in root) echo sandbox/test_kept.py test_what_there_is test_what_leads_out test_what_a_program_has ;; esac)
}

beyond="test_memory_beyond_the_budget test_processes_beyond_the_budget test_cpu_beyond_the_budget test_sizes_beyond_the_budget
  test_time_beyond_the_budget"
required="--require memory.cgroup --require cpu.cgroup --require processes.cgroup"

budgets() {
  case $(uname -r) in
    6.1.*)
      in_group /
      check "root, below the hierarchy's root" $SBX run $required -- true
      tests root budget/test_matrix.py $beyond
      ;;
    *)
      in_group delegated/shell
      check "user, beside the own group" /src/tests/run-as user $SBX run $required -- true
      tests user budget/test_matrix.py $beyond
      in_group plain
      check "user without a delegated group" /src/tests/run-as user sh -c "$SBX run --json -- true | grep -q polled"
      ;;
  esac
}

# Beside each other, because the machine has two CPUs and nothing here is judged by time.
(
  beside=.budgets
  budgets
  exit $failed
) &
in_group /
another_kernel root
in_group delegated/shell
another_kernel user
wait $! || failed=1

# Last and alone, because it changes settings of the kernel. The other kernel does this in refusals.sh.
in_group /
case $(uname -r) in 6.1.*) ;; *) tests root vm/inside/test_refusals.py ;; esac
finish
