#!/bin/bash
# check_emulated.sh EMULATOR SBX TABLE: sbx for 64-bit Arm under an emulator of single programs says that nothing can run there; and
# none of the calls of TABLE (syscalls.def) that the architecture lacks can be denied in vain.
set -eu
command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; [ -z "${SBX_NO_SKIPS:-}" ] || exit 1; exit 77; }
emulator=$1 program=$2 table=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# Sessions of whoever tests here have no part in it: one named so would be told of first.
export HOME="$scratch" XDG_RUNTIME_DIR="$scratch" XDG_STATE_HOME="$scratch"

# says STATUS TEXT ARGUMENT…: sbx ends with it, and its answer contains the text.
says() {
  local expected=$1 text=$2 status=0
  shift 2
  "$emulator" "$program" "$@" >said 2>&1 </dev/null || status=$?
  if [ $status != "$expected" ] || ! grep -qF -- "$text" said; then
    printf '%s\n' "sbx $*: status $status, not $expected with \"$text\":"
    cat said policy.toml 2>/dev/null
    exit 1
  fi
}

for words in "run -- true" "session start work"; do
  # shellcheck disable=SC2086 # words
  says 125 'error[emulated]' $words
  grep -q "use the build of sbx for the machine's own architecture" said
done
says 1 'emulated program by program' doctor
grep -q '^  missing architecture  *aarch64, pages of [0-9]* KiB' said
if grep -E 'docker|install it' said; then echo "doctor advises what does not help"; exit 1; fi
for words in --version "help run" "completions bash" "policy list" "policy explain limits.memory"; do
  # shellcheck disable=SC2086
  says 0 '' $words
done

# policy LINE…: the rules on system calls.
policy() { printf '%s\n' '[syscalls]' "$@" >policy.toml; }
checked=0
while read -r number name; do
  [ "$number" = -1 ] || continue
  successor=$(sed -n "s/^INSTEAD($name, \"\\(.*\\)\")\$/\\1/p" "$table")
  policy "deny = [\"$name\"]"
  if [ -n "$successor" ]; then
    says 1 'error[absent-syscall]' policy check policy.toml
    if ! grep -qF 'policy.toml:2:' said || ! grep -qF "help: deny \"$successor\" too" said; then cat said; exit 1; fi
    policy "deny = [\"$name\", \"$successor\"]"
  fi
  says 0 good policy check policy.toml
  policy "allow = [\"$name\"]"
  says 0 'has no effect' policy check policy.toml
  checked=$((checked + 1))
done < <(sed -n 's/^CALL([^,]*, *\(-\{0,1\}[0-9]*\), *\([a-z0-9_]*\),.*/\1 \2/p' "$table")
[ $checked -ge 50 ] || { echo "only $checked absent calls in $table"; exit 1; }

# A rule on the successor is enough.
rule() { # NAME ARGUMENT
  printf '[[syscalls.rule]]\nname = "%s"\nwhen = { arg = %s, op = "eq", value = 2541 }\naction = "deny"\nreason = "no set-user-ID mode"\n' "$@"
}
policy 'allow = []' "$(rule chmod 1)"
says 1 'error[absent-syscall]' policy check policy.toml
policy 'allow = []' "$(rule chmod 1)" "$(rule fchmodat 2)"
says 0 good policy check policy.toml
echo "$checked calls that 64-bit Arm lacks: none can be denied in vain"
