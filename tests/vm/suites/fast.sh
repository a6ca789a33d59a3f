# A little of everything on another kernel, with cgroup v2 delegated: as root, and as uid 1000 in its own group. Each
# kernel runs the matrix of budgets as one of them; matrix.sh runs all of it.
. /src/tests/vm/guest.sh
delegate_to_tester

a_little_of_everything() {
  check "a little of everything ($1, $group)" /src/tests/run-as $1 /usr/bin/python3 /src/tests/vm/inside/several.py \
    sandbox/test_verdicts.py test_exit_status_is_the_commands test_cpu_time test_file_size test_full_disk_only_refuses \
    test_output_with_kill \
    sandbox/test_streams.py test_output_passes_byte_for_byte test_interactive_program_has_a_terminal \
    sandbox/test_workspace.py test_replaced_and_renamed_folders_are_seen_name_by_name test_the_folder_becomes_what_the_program_saw \
    session/test_sessions.py test_start_prints_the_name_and_stop_leaves_nothing test_calls_share_files_and_each_has_its_own_status \
    test_wall_time_ends_one_call_and_no_other test_memory_of_the_session_ends_the_call_that_holds_most \
    test_changes_and_diff_while_it_lives test_put_get_and_ls \
    session/test_attacks.py test_two_sessions_do_not_reach_each_other test_files_that_fill_the_memory_end_no_session \
    test_files_that_fill_the_disk_leave_memory_for_calls \
    escape/test_host.py test_ungranted_path_is_absent test_old_root_is_not_mounted test_init_cannot_be_harmed \
    test_host_processes_are_not_listed test_abstract_socket_is_unreachable_in_the_hosts_network test_write_grant_is_writable \
    escape/test_proc.py test_kernel_settings_cannot_be_written test_nested_user_namespaces_are_off_by_setting_too \
    escape/test_endings.py test_limit_counts_per_sandbox test_fork_bomb_is_stopped_by_the_limit \
    $(case $(uname -r) in 6.1.*) echo vm/inside/test_upper_folder.py ;; esac)
}

# Both callers at once, because the machine has two CPUs; measurements follow, alone.
(
  beside=.root
  in_group /
  a_little_of_everything root
  exit $failed
) &
in_group delegated/shell
a_little_of_everything user
wait $! || failed=1

beyond="test_memory_beyond_the_budget test_processes_beyond_the_budget test_cpu_beyond_the_budget test_sizes_beyond_the_budget
  test_time_beyond_the_budget"
required="--require memory.cgroup --require cpu.cgroup --require processes.cgroup"
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
finish
