# What people use sbx for: solutions of problems, an analysis with a chart, sessions with cells, a download, changes applied.
# packages: python3-pandas python3-matplotlib curl iproute2 openssl
. /src/tests/vm/guest.sh
delegate_to_tester
export SBX_HUMANEVAL=/t/HumanEval.jsonl.gz SBX_PROBLEMS=20

uses() {
  tests $1 sandbox/test_humaneval.py test_reference_solutions_pass
  tests $1 sandbox/test_programs.py test_output_is_the_same_as_outside
  tests $1 session/test_eval.py test_state_is_kept_and_the_value_is_printed test_calls_and_contexts_share_files_and_nothing_else
  tests $1 session/test_story.py test_a_day_in_a_session
  for method in test_allowed_name_is_reached_and_counted test_other_name_does_not_resolve_and_is_named; do
    tests $1 network/test_allow_list.py $method # each makes its network in a process of its own
  done
  tests $1 sandbox/test_workspace.py test_the_directory_becomes_what_the_program_saw
  tests $1 sandbox/test_apply.py test_twin_where_nothing_moved_there_the_rest_is_deleted
}

(
  beside=.root
  in_group /
  uses root
  exit $failed
) &
root=$!
in_group delegated/shell
uses user
wait $root || failed=1
finish
