# bash completion for sbx; made by sbx-docs from the command line's own tree; not edited by hand

_sbx_commands="run policy doctor why ps stop session changes completions help"
_sbx_builtins="default strict data-analysis python node shell agent ci-untrusted offline-build web-fetch"
_sbx_keys="name description locked enforcement interpreters.allow interpreters.venv interpreters.extensions filesystem.system filesystem.read filesystem.write filesystem.deny filesystem.sockets filesystem.scan filesystem.landlock filesystem.seed filesystem.workspace.source filesystem.workspace.mode filesystem.outputs.collect filesystem.outputs.max_bytes filesystem.outputs.max_files filesystem.outputs.max_depth environment.pass environment.set syscalls.base syscalls.allow syscalls.deny syscalls.denied syscalls.rule network.mode network.allow network.private network.match_sni network.publish network.named limits.wall_time limits.cpu_time limits.cpus limits.memory limits.processes limits.open_files limits.file_size limits.disk limits.disk_files limits.disk_on limits.grace output.stdout output.stderr output.passed output.exceed output.results session.idle session.lifetime session.calls session.contexts session.cpu_time session.log"
_sbx_names="name description locked enforcement interpreters.allow interpreters.venv interpreters.extensions filesystem.system filesystem.read filesystem.write filesystem.deny filesystem.sockets filesystem.scan filesystem.landlock filesystem.seed filesystem.workspace.source filesystem.workspace.mode filesystem.outputs.collect filesystem.outputs.max_bytes filesystem.outputs.max_files filesystem.outputs.max_depth environment.pass environment.set syscalls.base syscalls.allow syscalls.deny syscalls.denied syscalls.rule network.mode network.allow network.private network.match_sni network.publish network.named limits.wall_time limits.cpu_time limits.cpus limits.memory limits.processes limits.open_files limits.file_size limits.disk limits.disk_files limits.disk_on limits.grace output.stdout output.stderr output.passed output.exceed output.results session.idle session.lifetime session.calls session.contexts session.cpu_time session.log @always @basic-io @io-event @file-read @file-write @file-lock @sync @memory @thread @signal @timer @scheduling @resources @process @process-spawn @identity @ipc @network @system-info @self-restriction @debug @profile @aio @io-uring @numa @mount @namespace @keyring @handle @fanotify @bpf @memory-tricks @module @reboot @swap @clock @raw-io @privileged @obsolete allow-host-with-none allow-host-with-host bad-descriptor bad-input bad-code bad-context-name bad-session-name bad-set-name bad-value bad-variable call-ended context-busy input-too-large language-with-command misplaced-option missing-command missing-value other-language other-policy other-directory not-of-a-call session-exists session-twice session-gone session-silent too-many-contexts too-many-calls name-taken no-context-language no-such-call no-such-context no-such-session not-in-background needs-language no-changes-kept no-code-option no-command no-writer no-such-run no-such-set nobody-to-ask nothing-to-bring-out nothing-to-run reserved too-large unexpected-value unknown-command unknown-language unknown-option unknown-requirement unknown-stage usage absent-syscall bad-call-name bad-command bad-destination bad-extension bad-path bad-pattern bad-publication bad-unit denied-cannot-kill denied-grant duplicate-key empty-text extends-cycle extends-too-deep forbidden-grant filter-too-long invalid-utf8 missing-key needed-syscall-denied nested-too-deep no-such-argument not-settable nul-in-text out-of-range policy-too-large rule-never-matches rule-on-hot-call shadows-builtin toml-syntax too-many-entries too-many-findings too-many-policies too-many-ports unknown-key unknown-symbol unknown-syscall unknown-syscall-group unknown-word unsupported-schema widens-locked session-processes-used-up session-memory-full session-cpu-spent widens-session workspace-too-large wrong-type wrong-value-count bad-interpreter broken-set broken-transfer outputs-exceeded cannot-lock cannot-look cannot-make cannot-open cannot-put cannot-read cannot-write command-not-executable command-not-found interpreter-not-allowed missing-grant missing-system missing-workspace bad-notebook old-notebook own-notebook no-content no-home no-interpreter no-mount-point no-record-kept not-a-record no-session-folder not-in-session no-state-folder link-leads-out untrusted-parent no-such-file no-system no-venv no-workspace-mode not-a-file not-a-regular-file not-a-socket not-brought-out not-dropped foreign-architecture not-executable not-found not-grantable not-kept out-unusable report-unwritable seed-outside-home seed-too-large set-in-use shim-loop two-grants uncountable-grant unfit-workspace unknown-policy unreadable-grant unreadable-policy unusable-submount workspace-gone workspace-replaced not-ended calls-not-stopped cannot-clone cannot-send emulated descriptors-in-flight cannot-publish listener-busy no-disk-folder no-fence no-free-uid no-uid-locks processes-hidden no-proc no-rights-in-namespace no-user-namespace requirement-not-met no-interface-list no-resolver no-cgroup no-scope cannot-bind cannot-copy cannot-idmap cannot-open-source changed-during-set-up child-died memory-too-small no-overlay no-whiteouts bad-request broken-page init-killed no-descriptors no-epoll no-listener no-pidfd no-pipe no-signalfd no-socket no-stream bad-message call-lost worker-lost exited signaled over-budget denied cancelled lost setup-failed success limits_met denials degraded enforced network usage changes appeared hints hazards left_running write_error kept applied out 1 2 124 125 126 127 137 152 153 159"

_sbx_words() {
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# Built-in policies, those of the machine and the user, and files.
_sbx_policies() {
    local file names=$_sbx_builtins
    for file in /etc/sbx/policies/*.toml "${XDG_CONFIG_HOME:-$HOME/.config}"/sbx/policies/*.toml; do
        [[ -e $file ]] && file=${file##*/} && names+=" ${file%.toml}"
    done
    COMPREPLY=($(compgen -W "$names" -- "$cur") $(compgen -f -- "$cur"))
}

_sbx_keys() {
    COMPREPLY=($(compgen -S = -W "$_sbx_keys" -- "$cur"))
    compopt -o nospace 2>/dev/null
}

# Change sets that are kept: the first column below the head.
_sbx_sets() {
    local sets=$(sbx changes list 2>/dev/null | sed '1d;s/ .*//')
    _sbx_words "$sets"
}

_sbx_session_names() {
    _sbx_words "$(sbx session list 2>/dev/null | awk 'NR > 1 { print $1 }')"
}

# The words from index $1 on are a command line of their own.
_sbx_command() {
    if declare -F _command_offset >/dev/null && (($1 < COMP_CWORD)); then
        _command_offset "$1"
    else
        COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
    fi
}

# Sessions that live; after one: its calls, its contexts, a command, or files.
_sbx_sessions() {
    local i operands=() verb=${COMP_WORDS[2]}
    for ((i = 3; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --lang|-c|--session|--cells|--parameter|-p|--policy|--set|--require|--timeout|--cpu-time|--cpus|--memory|--processes|--disk|--output|--workspace|--read|--write|--in|--venv|--net|--allow-host|--env|--env-file|--env-fd|--stdin|--out|--collect|--keep|--report|--report-fd|--events-fd|--color|--format|--name|--context|--results) ((i += 1)) ;;
        -*) ;;
        *) operands+=("${COMP_WORDS[i]}") && [[ $verb == exec ]] && break ;;
        esac
    done
    case $verb:${#operands[@]} in
    *:0 | stop:*) _sbx_session_names ;;
    exec:*) _sbx_command $((i + 1)) ;;
    logs:1 | wait:1 | kill:1)
        _sbx_words "$(sbx session calls "${operands[0]}" 2>/dev/null | awk 'NR > 1 { print $1 }')" ;;
    kill:2) _sbx_words "INT TERM HUP QUIT KILL USR1 USR2 STOP CONT" ;;
    interrupt:1 | restart:1)
        _sbx_words "$(sbx session contexts "${operands[0]}" 2>/dev/null | awk 'NR > 1 { print $1 }')" ;;
    logs:* | wait:* | kill:* | interrupt:* | restart:*) ;;
    *) COMPREPLY=($(compgen -f -- "$cur")) ;;
    esac
}

# Offers the value of the option before the cursor; fails where that takes none.
_sbx_value() {
    case $prev in
    --lang) _sbx_words "python javascript typescript ruby perl r lua php bash sh c c++ go rust java" ;;
    -c) : ;;
    --session) _sbx_session_names ;;
    --cells) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --parameter) : ;;
    -p|--policy) _sbx_policies ;;
    --set) _sbx_keys ;;
    --require) _sbx_words "memory.cgroup cpu.cgroup processes.cgroup landlock syscalls.named network.named trusted-policy all" ;;
    --timeout) : ;;
    --cpu-time) : ;;
    --cpus) : ;;
    --memory) : ;;
    --processes) : ;;
    --disk) : ;;
    --output) : ;;
    --workspace) COMPREPLY=($(compgen -d -- "$cur")) ;;
    --read) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --write) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --in) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --venv) COMPREPLY=($(compgen -d -- "$cur")) ;;
    --net) _sbx_words "none host" ;;
    --allow-host) : ;;
    --env) : ;;
    --env-file) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --env-fd) : ;;
    --stdin) _sbx_words "inherit null" ;;
    --out) COMPREPLY=($(compgen -d -- "$cur")) ;;
    --collect) : ;;
    --keep) : ;;
    --report) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --report-fd) : ;;
    --events-fd) : ;;
    --color) _sbx_words "auto always never" ;;
    --format) _sbx_words "human json github sarif" ;;
    --name) : ;;
    --context) : ;;
    --results) COMPREPLY=($(compgen -d -- "$cur")) ;;
    *) return 1 ;;
    esac
    return 0
}

_sbx_run() {
    local i=2 word
    while ((i < COMP_CWORD)); do
        word=${COMP_WORDS[i]}
        case $word in
        --) _sbx_command $((i + 1)); return ;;
        --lang|-c|--session|--cells|--parameter|-p|--policy|--set|--require|--timeout|--cpu-time|--cpus|--memory|--processes|--disk|--output|--workspace|--read|--write|--in|--venv|--net|--allow-host|--env|--env-file|--env-fd|--stdin|--out|--collect|--keep|--report|--report-fd|--events-fd|--color) ((i += 2)); continue ;;
        -?*) ((i += 1)); continue ;;
        *) _sbx_command $i; return ;;
        esac
    done
    _sbx_value && return
    if [[ $cur == -* ]]; then
        _sbx_words "--lang -c --session --cells --keep-going --parameter -p --policy --set --require --timeout --cpu-time --cpus --memory --processes --disk --output --workspace --read --write --in --venv --net --allow-host --env --env-file --env-fd --stdin -i --interactive --out --collect --diff --apply --yes --keep --json --report --report-fd --events-fd --explain --github --die-with-parent --dry-run --trace-time -q --quiet -v --verbose --color -h --help"
    else
        _sbx_command $COMP_CWORD
    fi
}

# A command that is not run: $1 is its name.
_sbx_other() {
    local options=--help
    _sbx_value && return
    case $1 in
    'policy list') options="--color -h --help"; : ;;
    'policy show') options="--effective --origin --json --set --color -h --help"; _sbx_policies ;;
    'policy check') options="--format --color -h --help"; COMPREPLY=($(compgen -f -- "$cur")) ;;
    'policy explain') options="--color -h --help"; _sbx_words "$_sbx_names" ;;
    'policy diff') options="--json --color -h --help"; _sbx_policies ;;
    'policy schema') options="--color -h --help"; : ;;
    'policy init') options="--name -p --policy --set --timeout --cpu-time --cpus --memory --processes --disk --output --workspace --read --write --venv --net --allow-host --env --color -h --help"; : ;;
    'policy audit') options="--json --color -h --help"; _sbx_policies ;;
    'doctor') options="-p --policy --json -q --quiet --color -h --help"; : ;;
    'why') options="--color -h --help"; COMPREPLY=($(compgen -f -- "$cur")) ;;
    'ps') options="--json --color -h --help"; : ;;
    'stop') options="--all --color -h --help"; : ;;
    'session start') options="-p --policy --set --require --timeout --cpu-time --cpus --memory --processes --disk --output --workspace --read --write --in --venv --net --allow-host --env --env-file --env-fd --json -q --quiet -v --verbose --color -h --help"; : ;;
    'session exec') options="--lang -c --set --require --timeout --cpu-time --output --env --env-file --env-fd --stdin -i --interactive --json --report --report-fd --events-fd --explain -q --quiet -v --verbose --die-with-parent -d --detach --color -h --help"; _sbx_sessions ;;
    'session eval') options="--lang --context -c -i --interactive --timeout --output --json --stream --results --die-with-parent -q --quiet --color -h --help"; _sbx_sessions ;;
    'session contexts') options="--json --color -h --help"; _sbx_sessions ;;
    'session interrupt') options="--json --color -h --help"; _sbx_sessions ;;
    'session restart') options="--json --color -h --help"; _sbx_sessions ;;
    'session calls') options="--json --color -h --help"; _sbx_sessions ;;
    'session logs') options="-f --follow --json --color -h --help"; _sbx_sessions ;;
    'session wait') options="--json --color -h --help"; _sbx_sessions ;;
    'session kill') options="--json --color -h --help"; _sbx_sessions ;;
    'session put') options="--json --color -h --help"; _sbx_sessions ;;
    'session get') options="--out --json -q --quiet --color -h --help"; _sbx_sessions ;;
    'session ls') options="--json --color -h --help"; _sbx_sessions ;;
    'session changes') options="--json --color -h --help"; _sbx_sessions ;;
    'session diff') options="--patch --json --color -h --help"; _sbx_sessions ;;
    'session apply') options="--yes --json --color -h --help"; _sbx_sessions ;;
    'session keep') options="--json --color -h --help"; _sbx_sessions ;;
    'session list') options="--json --color -h --help"; : ;;
    'session show') options="--json --color -h --help"; _sbx_sessions ;;
    'session stats') options="--json --color -h --help"; _sbx_sessions ;;
    'session extend') options="--json --color -h --help"; _sbx_sessions ;;
    'session stop') options="--all --keep --json --color -h --help"; _sbx_sessions ;;
    'changes list') options="--json --color -h --help"; : ;;
    'changes show') options="--json --color -h --help"; _sbx_sets ;;
    'changes diff') options="--patch --color -h --help"; _sbx_sets ;;
    'changes apply') options="--yes --json --color -h --help"; _sbx_sets ;;
    'changes drop') options="--color -h --help"; _sbx_sets ;;
    'completions') options="--color -h --help"; _sbx_words "bash zsh fish" ;;
    'help') options="--color -h --help"; _sbx_words "$_sbx_commands" ;;
    esac
    [[ $cur == -* ]] && _sbx_words "$options"
}

_sbx() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _sbx_words "$_sbx_commands --help --version"
        return
    fi
    case ${COMP_WORDS[1]} in
    run) _sbx_run ;;
    policy)
        if ((COMP_CWORD == 2)); then _sbx_words "list show check explain diff schema init audit"; else _sbx_other "policy ${COMP_WORDS[2]}"; fi
        ;;
    session)
        if ((COMP_CWORD == 2)); then _sbx_words "start exec eval contexts interrupt restart calls logs wait kill put get ls changes diff apply keep list show stats extend stop"; else _sbx_other "session ${COMP_WORDS[2]}"; fi
        ;;
    changes)
        if ((COMP_CWORD == 2)); then _sbx_words "list show diff apply drop"; else _sbx_other "changes ${COMP_WORDS[2]}"; fi
        ;;
    *) _sbx_other "${COMP_WORDS[1]}" ;;
    esac
}

complete -o filenames -F _sbx sbx
