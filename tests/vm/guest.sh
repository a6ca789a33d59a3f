# Sourced by the jobs in suites/: runs the project's tests inside a guest, as root and as uid 1000, and counts failures.

export SBX=/t/sbx SBX_WITH_FAULTS=/t/sbx_with_faults SBX_PROBE=/t/probe SBX_SOURCE=/src SBX_BUILD=/t SBX_TEST_USER=tester SBX_EMULATED=yes SBX_DOCKER_FILTER=/t/docker-filter.json SBX_PODMAN_FILTER=/t/podman-filter.json PYTHONPATH=/src/tests/harness PYTHONDONTWRITEBYTECODE=1 HOME=/root LANG=C.UTF-8
unset TERM
failed=0
group=/
beside=
cgroups=/sys/fs/cgroup

# As systemd does for a user's manager: a subtree that uid 1000 may divide, with the shell in a leaf of it.
delegate_to_tester() {
  echo "+cpu +memory +pids" >$cgroups/cgroup.subtree_control
  mkdir -p $cgroups/delegated/shell $cgroups/plain # in "plain" nobody but root may do anything
  echo "+cpu +memory +pids" >$cgroups/delegated/cgroup.subtree_control
  for name in delegated delegated/shell; do
    for file in . cgroup.procs cgroup.threads cgroup.subtree_control; do
      chown 1000:1000 $cgroups/$name/$file
    done
  done
}

# in_group GROUP: later commands start in this group.
in_group() {
  group=$1
}

enter_group() {
  [ "$group" = stay ] || echo 0 >"$cgroups/$group/cgroup.procs"
}

# check NAME COMMAND…: one test; shows its output if it fails. Two may run at a time, one of them in a subshell that
# has set `beside`.
check() {
  name=$1
  output=/run/output$beside
  shift
  before=$(cut -d' ' -f1 /proc/uptime)
  status=0
  (enter_group && cd /tmp && exec "$@") >"$output" 2>&1 </dev/null || status=$?
  after=$(cut -d' ' -f1 /proc/uptime)
  case $status in
    0) echo "@@PASS $name ($before to $after)"
      grep -h "^@@" "$output" || : ;;
    77) echo "@@SKIP $name: $(grep skipped "$output" | head -1)" ;;
    *)
      echo "@@FAIL $name: status $status ($before to $after)"
      cat "$output"
      failed=1
      ;;
  esac
  grep -h '\.\.\. skipped' "$output" || :
}

# tests CALLER SCRIPT [METHOD…]: methods of a script below tests/ (without any: every fast one), in one process.
tests() {
  caller=$1
  script=$2
  shift 2
  [ $# -gt 0 ] || set -- $(fast_methods "$script")
  check "$script $* ($caller, $group)" /src/tests/run-as "$caller" /usr/bin/python3 "/src/tests/$script" "$@"
}

# both SCRIPT…: the fast tests of these scripts for both callers, in parallel, because the machine has two CPUs.
both() {
  (
    beside=.root
    in_group /
    for each in "$@"; do tests root "$each"; done
    exit $failed
  ) &
  root=$!
  in_group delegated/shell
  for each in "$@"; do tests user "$each"; done
  wait $root || failed=1
}

# alone SCRIPT…: the same in succession, with nothing in parallel.
alone() {
  for each in "$@"; do
    in_group /
    tests root "$each"
    in_group delegated/shell
    tests user "$each"
  done
}

# scripts DIRECTORY: its test scripts, except those that measure, start spinning processes or run what a guest has not.
scripts() {
  (cd /src/tests && ls "$1"/test_*.py | grep -vE '/test_(races|kill|cost|outside_work)\.py$')
}

# Emulation slows these down beyond what they measure.
timed='test_(slow_.*|second_signal_.*|wall_time|wall_time_with_grace.*|five_thousand_changes.*|flood_costs.*|flood_is_counted.*|stubborn_tree_.*|supervisor_does_not_grow.*)'

# The overlays' upper layers are in the state home here, which this test watches.
case $(uname -r) in 6.1.*) timed="$timed|test_a_run_writes_nothing_on_the_host_unless_asked" ;; esac

fast_methods() {
  sed -n 's/^ *def \(test_[a-z0-9_]*\)(.*/\1/p' "/src/tests/$1" | grep -vxE "$timed"
}

finish() {
  exit $failed
}
