# fish completion for sbx; made by sbx-docs from the command line's own tree; not edited by hand

# Prints the index of the first operand of "sbx run"; fails while there is none.
function __sbx_operand
    set -l words (commandline -opc)
    test "$words[2]" = run; or return 1
    set -l i 3
    while test $i -le (count $words)
        switch $words[$i]
            case --
                echo (math $i + 1)
                return 0
            case --lang -c --session --cells --parameter -p --policy --set --require --timeout --cpu-time --cpus --memory --processes --disk --output --workspace --read --write --in --venv --net --allow-host --env --env-file --env-fd --stdin --out --collect --keep --report --report-fd --events-fd --color
                set i (math $i + 2)
            case '-*'
                set i (math $i + 1)
            case '*'
                echo $i
                return 0
        end
    end
    return 1
end

function __sbx_run_options
    __sbx_is run; and not __sbx_operand >/dev/null
end

function __sbx_run_command
    __sbx_operand >/dev/null
end

function __sbx_complete_command
    set -l words (commandline -opc) (commandline -ct)
    set -l first (__sbx_operand); or return
    complete -C (string join ' ' -- $words[$first..-1])
end

# True when the words after the program's name begin with these.
function __sbx_is
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end

# True when these are the only words before the cursor.
function __sbx_after
    set -l words (commandline -opc)
    test (count $words) -eq (math (count $argv) + 1); and begin
        test (count $argv) -eq 0; or __sbx_is $argv
    end
end

# Built-in policies, and those of the machine and the user.
function __sbx_policies
    printf '%s\n' default strict data-analysis python node shell agent ci-untrusted offline-build web-fetch
    set -l config $XDG_CONFIG_HOME
    test -n "$config"; or set config $HOME/.config
    for file in /etc/sbx/policies/*.toml $config/sbx/policies/*.toml
        string replace -r '.*/(.*)\.toml$' '$1' -- $file
    end
end

function __sbx_keys
    printf '%s\n' name description locked enforcement interpreters.allow interpreters.venv interpreters.extensions filesystem.system filesystem.read filesystem.write filesystem.deny filesystem.sockets filesystem.scan filesystem.landlock filesystem.seed filesystem.workspace.source filesystem.workspace.mode filesystem.outputs.collect filesystem.outputs.max_bytes filesystem.outputs.max_files filesystem.outputs.max_depth environment.pass environment.set syscalls.base syscalls.allow syscalls.deny syscalls.denied syscalls.rule network.mode network.allow network.private network.match_sni network.publish network.named limits.wall_time limits.cpu_time limits.cpus limits.memory limits.processes limits.open_files limits.file_size limits.disk limits.disk_files limits.disk_on limits.grace output.stdout output.stderr output.passed output.exceed output.results session.idle session.lifetime session.calls session.contexts session.cpu_time session.log
end

function __sbx_names
    printf '%s\n' name description locked enforcement interpreters.allow interpreters.venv interpreters.extensions filesystem.system filesystem.read filesystem.write filesystem.deny filesystem.sockets filesystem.scan filesystem.landlock filesystem.seed filesystem.workspace.source filesystem.workspace.mode filesystem.outputs.collect filesystem.outputs.max_bytes filesystem.outputs.max_files filesystem.outputs.max_depth environment.pass environment.set syscalls.base syscalls.allow syscalls.deny syscalls.denied syscalls.rule network.mode network.allow network.private network.match_sni network.publish network.named limits.wall_time limits.cpu_time limits.cpus limits.memory limits.processes limits.open_files limits.file_size limits.disk limits.disk_files limits.disk_on limits.grace output.stdout output.stderr output.passed output.exceed output.results session.idle session.lifetime session.calls session.contexts session.cpu_time session.log @always @basic-io @io-event @file-read @file-write @file-lock @sync @memory @thread @signal @timer @scheduling @resources @process @process-spawn @identity @ipc @network @system-info @self-restriction @debug @profile @aio @io-uring @numa @mount @namespace @keyring @handle @fanotify @bpf @memory-tricks @module @reboot @swap @clock @raw-io @privileged @obsolete allow-host-with-none allow-host-with-host bad-descriptor bad-input bad-code bad-context-name bad-session-name bad-set-name bad-value bad-variable call-ended context-busy input-too-large language-with-command misplaced-option missing-command missing-value other-language other-policy other-directory not-of-a-call session-exists session-twice session-gone session-silent too-many-contexts too-many-calls name-taken no-context-language no-such-call no-such-context no-such-session not-in-background needs-language no-changes-kept no-code-option no-command no-writer no-such-run no-such-set nobody-to-ask nothing-to-bring-out nothing-to-run reserved too-large unexpected-value unknown-command unknown-language unknown-option unknown-requirement unknown-stage usage absent-syscall bad-call-name bad-command bad-destination bad-extension bad-path bad-pattern bad-publication bad-unit denied-cannot-kill denied-grant duplicate-key empty-text extends-cycle extends-too-deep forbidden-grant filter-too-long invalid-utf8 missing-key needed-syscall-denied nested-too-deep no-such-argument not-settable nul-in-text out-of-range policy-too-large rule-never-matches rule-on-hot-call shadows-builtin toml-syntax too-many-entries too-many-findings too-many-policies too-many-ports unknown-key unknown-symbol unknown-syscall unknown-syscall-group unknown-word unsupported-schema widens-locked session-processes-used-up session-memory-full session-cpu-spent widens-session workspace-too-large wrong-type wrong-value-count bad-interpreter broken-set broken-transfer outputs-exceeded cannot-lock cannot-look cannot-make cannot-open cannot-put cannot-read cannot-write command-not-executable command-not-found interpreter-not-allowed missing-grant missing-system missing-workspace bad-notebook old-notebook own-notebook no-content no-home no-interpreter no-mount-point no-record-kept not-a-record no-session-folder not-in-session no-state-folder link-leads-out untrusted-parent no-such-file no-system no-venv no-workspace-mode not-a-file not-a-regular-file not-a-socket not-brought-out not-dropped foreign-architecture not-executable not-found not-grantable not-kept out-unusable report-unwritable seed-outside-home seed-too-large set-in-use shim-loop two-grants uncountable-grant unfit-workspace unknown-policy unreadable-grant unreadable-policy unusable-submount workspace-gone workspace-replaced not-ended calls-not-stopped cannot-clone cannot-send emulated descriptors-in-flight cannot-publish listener-busy no-disk-folder no-fence no-free-uid no-uid-locks processes-hidden no-proc no-rights-in-namespace no-user-namespace requirement-not-met no-interface-list no-resolver no-cgroup no-scope cannot-bind cannot-copy cannot-idmap cannot-open-source changed-during-set-up child-died memory-too-small no-overlay no-whiteouts bad-request broken-page init-killed no-descriptors no-epoll no-listener no-pidfd no-pipe no-signalfd no-socket no-stream bad-message call-lost worker-lost exited signaled over-budget denied cancelled lost setup-failed success limits_met denials degraded enforced network usage changes appeared hints hazards left_running write_error kept applied out 1 2 124 125 126 127 137 152 153 159
end

function __sbx_commands
    printf '%s\n' run policy doctor why ps stop session changes completions help
end

# Change sets that are kept: the first column below the head.
function __sbx_sets
    sbx changes list 2>/dev/null | sed '1d;s/ .*//'
end

function __sbx_session_names
    sbx session list 2>/dev/null | awk 'NR > 1 { print $1 }'
end

# The operands of a command of sessions.
function __sbx_session_operands
    set -l words (commandline -opc)
    set -l i 4
    while test $i -le (count $words)
        switch $words[$i]
            case --lang -c --session --cells --parameter -p --policy --set --require --timeout --cpu-time --cpus --memory --processes --disk --output --workspace --read --write --in --venv --net --allow-host --env --env-file --env-fd --stdin --out --collect --keep --report --report-fd --events-fd --color --format --name --context --results
                set i (math $i + 1)
            case '-*'
            case '*'
                echo $words[$i]
        end
        set i (math $i + 1)
    end
end

# Sessions that live; after one: its calls or contexts.
function __sbx_sessions
    set -l words (commandline -opc)
    set -l operands (__sbx_session_operands)
    switch $words[3]:(count $operands)
        case '*:0' 'stop:*'
            __sbx_session_names
        case logs:1 wait:1 kill:1
            sbx session calls $operands[1] 2>/dev/null | awk 'NR > 1 { print $1 }'
        case kill:2
            string split ' ' 'INT TERM HUP QUIT KILL USR1 USR2 STOP CONT'
        case interrupt:1 restart:1
            sbx session contexts $operands[1] 2>/dev/null | awk 'NR > 1 { print $1 }'
    end
end

complete -c sbx -f
complete -c sbx -n __sbx_after -a run -d 'Run a script or a command in a sandbox.'
complete -c sbx -n __sbx_after -a policy -d 'Commands: list, show, check, explain, diff, schema, init, audit.'
complete -c sbx -n '__sbx_after policy' -a list -d 'List the policies that have a name.'
complete -c sbx -n '__sbx_after policy' -a show -d 'Print a policy.'
complete -c sbx -n '__sbx_after policy' -a check -d 'Report every mistake of policy files.'
complete -c sbx -n '__sbx_after policy' -a explain -d 'Explain a policy key, a group of system calls, the code of an error, a word of a record, or an exit status.'
complete -c sbx -n '__sbx_after policy' -a diff -d 'Compare two policies: what the second widens, narrows or changes otherwise.'
complete -c sbx -n '__sbx_after policy' -a schema -d 'Print the JSON Schema of policies, for editors.'
complete -c sbx -n '__sbx_after policy' -a init -d 'Print a commented first policy, made from options of run.'
complete -c sbx -n '__sbx_after policy' -a audit -d 'Grade what a policy leaves open.'
complete -c sbx -n __sbx_after -a doctor -d 'Check what this machine can enforce and how to fix what it can\'t.'
complete -c sbx -n __sbx_after -a why -d 'Explain a record: how the run ended, what was refused, what would allow it. "-" is standard input; without FILE the kept record is read.'
complete -c sbx -n __sbx_after -a ps -d 'List the runs of this user that are under way.'
complete -c sbx -n __sbx_after -a stop -d 'Stop runs, as SIGTERM does: the program gets the signal, and 2 s later all of it ends.'
complete -c sbx -n __sbx_after -a session -d 'Commands: start, exec, eval, contexts, interrupt, restart, calls, logs, wait, kill, put, get, ls, changes, diff, apply, keep, list, show, stats, extend, stop.'
complete -c sbx -n '__sbx_after session' -a start -d 'Start a session: a sandbox that stays, for any number of calls. Prints its name.'
complete -c sbx -n '__sbx_after session' -a exec -d 'Run a script or a command in a session, as sbx run does in a sandbox of its own.'
complete -c sbx -n '__sbx_after session' -a eval -d 'Run a cell, the code of FILE or of standard input, in an interpreter of the session that keeps its state.'
complete -c sbx -n '__sbx_after session' -a contexts -d 'List the interpreters of a session that keep their state.'
complete -c sbx -n '__sbx_after session' -a interrupt -d 'Interrupt the cell that runs in a context, as Ctrl-C at its client does; without CONTEXT in all.'
complete -c sbx -n '__sbx_after session' -a restart -d 'End the interpreter of a context; the next cell starts another one. Without CONTEXT all.'
complete -c sbx -n '__sbx_after session' -a calls -d 'List the calls of a session that run, and the last that ended.'
complete -c sbx -n '__sbx_after session' -a logs -d 'Print what a background call wrote.'
complete -c sbx -n '__sbx_after session' -a wait -d 'Wait for a background call and exit with its status.'
complete -c sbx -n '__sbx_after session' -a kill -d 'Cancel a call, as SIGTERM to sbx run does, or send a signal to its command.'
complete -c sbx -n '__sbx_after session' -a put -d 'Copy files and directories of the host into a session.'
complete -c sbx -n '__sbx_after session' -a get -d 'Copy files and directories of a session to the host.'
complete -c sbx -n '__sbx_after session' -a ls -d 'List a directory of a session.'
complete -c sbx -n '__sbx_after session' -a changes -d 'List what a session has changed in its workspace.'
complete -c sbx -n '__sbx_after session' -a diff -d 'Show what a session has changed, texts line by line.'
complete -c sbx -n '__sbx_after session' -a apply -d 'Apply what a session has changed, only what matches GLOB if given, to the directory on the host.'
complete -c sbx -n '__sbx_after session' -a keep -d 'Keep what a session has changed as a change set.'
complete -c sbx -n '__sbx_after session' -a list -d 'List the sessions of this user.'
complete -c sbx -n '__sbx_after session' -a show -d 'Print a session\'s policy, process and end.'
complete -c sbx -n '__sbx_after session' -a stats -d 'Print what a session uses of its budgets.'
complete -c sbx -n '__sbx_after session' -a extend -d 'Let a session live for TIME from now.'
complete -c sbx -n '__sbx_after session' -a stop -d 'End sessions and everything in them.'
complete -c sbx -n __sbx_after -a changes -d 'Commands: list, show, diff, apply, drop.'
complete -c sbx -n '__sbx_after changes' -a list -d 'List the change sets that --keep has kept.'
complete -c sbx -n '__sbx_after changes' -a show -d 'List the changes of a set.'
complete -c sbx -n '__sbx_after changes' -a diff -d 'Show the changes of a set, texts line by line.'
complete -c sbx -n '__sbx_after changes' -a apply -d 'Apply the changes of a set, only those that match GLOB if given, to the directory they were made in.'
complete -c sbx -n '__sbx_after changes' -a drop -d 'Remove change sets.'
complete -c sbx -n __sbx_after -a completions -d 'Print a completion script for a shell.'
complete -c sbx -n __sbx_after -a help -d 'Print the help of a command.'
complete -c sbx -n '__sbx_is policy list' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy list' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy show' -l effective -d 'Print every key with the value it has after all layers, not the file.'
complete -c sbx -n '__sbx_is policy show' -l origin -d 'The same, each value with the file and line that set it.'
complete -c sbx -n '__sbx_is policy show' -l json -d 'Print every key with value and origin as JSON.'
complete -c sbx -n '__sbx_is policy show' -l set -x -a '(__sbx_keys)=' -d 'Show it as --set KEY=TOML would make it.'
complete -c sbx -n '__sbx_is policy show' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy show' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy show' -F -a '(__sbx_policies)'
complete -c sbx -n '__sbx_is policy check' -l format -x -a 'human json github sarif' -d 'For people, for programs, as annotations of a GitHub workflow, or as SARIF 2.1.0.'
complete -c sbx -n '__sbx_is policy check' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy check' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy check' -F
complete -c sbx -n '__sbx_is policy explain' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy explain' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy explain' -a '(__sbx_names)'
complete -c sbx -n '__sbx_is policy diff' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is policy diff' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy diff' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy diff' -F -a '(__sbx_policies)'
complete -c sbx -n '__sbx_is policy schema' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy schema' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy init' -l name -x -d 'What the policy is called.'
complete -c sbx -n '__sbx_is policy init' -s p -l policy -r -F -a '(__sbx_policies)' -d 'The policy to start from: a built-in\'s name or a file'
complete -c sbx -n '__sbx_is policy init' -l set -x -a '(__sbx_keys)=' -d 'Set one key of the policy, as in --set \'limits.memory="512M"\''
complete -c sbx -n '__sbx_is policy init' -l timeout -x -d 'Wall time: limits.wall_time'
complete -c sbx -n '__sbx_is policy init' -l cpu-time -x -d 'CPU time of all processes together: limits.cpu_time'
complete -c sbx -n '__sbx_is policy init' -l cpus -x -d 'CPUs used at once, fractions allowed: limits.cpus'
complete -c sbx -n '__sbx_is policy init' -l memory -x -d 'Memory of all processes together: limits.memory'
complete -c sbx -n '__sbx_is policy init' -l processes -x -d 'Processes and threads: limits.processes'
complete -c sbx -n '__sbx_is policy init' -l disk -x -d 'Space for everything the program writes that is not granted: limits.disk'
complete -c sbx -n '__sbx_is policy init' -l output -x -d 'Bytes of output, each of stdout and stderr: output.stdout, output.stderr and output.passed'
complete -c sbx -n '__sbx_is policy init' -l workspace -x -a '(__fish_complete_directories)' -d 'The program\'s working directory, and how it is given: overlay (changes vanish), read-only, read-write (changes are real) or empty'
complete -c sbx -n '__sbx_is policy init' -l read -r -F -d 'Make a file or directory of the host readable, at TARGET if given'
complete -c sbx -n '__sbx_is policy init' -l write -r -F -d 'Make a file or directory of the host writable: changes are real, while the program runs.'
complete -c sbx -n '__sbx_is policy init' -l venv -x -a '(__fish_complete_directories)' -d 'Use the interpreter and packages of a virtual environment, read-only.'
complete -c sbx -n '__sbx_is policy init' -l net -x -a 'none host' -d 'No network but the sandbox\'s own loopback, or the host\'s network.'
complete -c sbx -n '__sbx_is policy init' -l allow-host -x -d 'Let the program reach this host: network.allow, with network.mode "allow-list"'
complete -c sbx -n '__sbx_is policy init' -l env -x -d 'Pass a variable of the caller on by name, or set it to VALUE (visible in ps: see --env-fd)'
complete -c sbx -n '__sbx_is policy init' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy init' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy audit' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is policy audit' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is policy audit' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is policy audit' -F -a '(__sbx_policies)'
complete -c sbx -n '__sbx_is doctor' -s p -l policy -r -F -a '(__sbx_policies)' -d 'Say whether this policy can run here'
complete -c sbx -n '__sbx_is doctor' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is doctor' -s q -l quiet -d 'Print only what is weaker or missing.'
complete -c sbx -n '__sbx_is doctor' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is doctor' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is why' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is why' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is why' -F
complete -c sbx -n '__sbx_is ps' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is ps' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is ps' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is stop' -l all -d 'Stop all of them.'
complete -c sbx -n '__sbx_is stop' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is stop' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session start' -s p -l policy -r -F -a '(__sbx_policies)' -d 'A policy by name, or a policy file'
complete -c sbx -n '__sbx_is session start' -l set -x -a '(__sbx_keys)=' -d 'Set one key of the policy, as in --set \'limits.memory="512M"\''
complete -c sbx -n '__sbx_is session start' -l require -x -a 'memory.cgroup cpu.cgroup processes.cgroup landlock syscalls.named network.named trusted-policy all' -d 'Refuse to run when this could only be enforced in a weaker way, or not at all.'
complete -c sbx -n '__sbx_is session start' -l timeout -x -d 'Wall time: limits.wall_time'
complete -c sbx -n '__sbx_is session start' -l cpu-time -x -d 'CPU time of all processes together: limits.cpu_time'
complete -c sbx -n '__sbx_is session start' -l cpus -x -d 'CPUs used at once, fractions allowed: limits.cpus'
complete -c sbx -n '__sbx_is session start' -l memory -x -d 'Memory of all processes together: limits.memory'
complete -c sbx -n '__sbx_is session start' -l processes -x -d 'Processes and threads: limits.processes'
complete -c sbx -n '__sbx_is session start' -l disk -x -d 'Space for everything the program writes that is not granted: limits.disk'
complete -c sbx -n '__sbx_is session start' -l output -x -d 'Bytes of output, each of stdout and stderr: output.stdout, output.stderr and output.passed'
complete -c sbx -n '__sbx_is session start' -l workspace -x -a '(__fish_complete_directories)' -d 'The program\'s working directory, and how it is given: overlay (changes vanish), read-only, read-write (changes are real) or empty'
complete -c sbx -n '__sbx_is session start' -l read -r -F -d 'Make a file or directory of the host readable, at TARGET if given'
complete -c sbx -n '__sbx_is session start' -l write -r -F -d 'Make a file or directory of the host writable: changes are real, while the program runs.'
complete -c sbx -n '__sbx_is session start' -l in -r -F -d 'Copy a file in before the start, to the working directory or to TARGET'
complete -c sbx -n '__sbx_is session start' -l venv -x -a '(__fish_complete_directories)' -d 'Use the interpreter and packages of a virtual environment, read-only.'
complete -c sbx -n '__sbx_is session start' -l net -x -a 'none host' -d 'No network but the sandbox\'s own loopback, or the host\'s network.'
complete -c sbx -n '__sbx_is session start' -l allow-host -x -d 'Let the program reach this host: network.allow, with network.mode "allow-list"'
complete -c sbx -n '__sbx_is session start' -l env -x -d 'Pass a variable of the caller on by name, or set it to VALUE (visible in ps: see --env-fd)'
complete -c sbx -n '__sbx_is session start' -l env-file -r -F -d 'Set variables from lines NAME=VALUE; empty lines and lines that begin with # are skipped.'
complete -c sbx -n '__sbx_is session start' -l env-fd -x -d 'Like --env-file, from the open descriptor N; entries may end with zero bytes'
complete -c sbx -n '__sbx_is session start' -l json -d 'Print the session\'s name, process and end as JSON.'
complete -c sbx -n '__sbx_is session start' -s q -l quiet -d 'Print nothing but errors.'
complete -c sbx -n '__sbx_is session start' -s v -l verbose -d 'Say also what was bound and why, and list weaker enforcement.'
complete -c sbx -n '__sbx_is session start' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session start' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session exec' -l lang -x -a 'python javascript typescript ruby perl r lua php bash sh c c++ go rust java' -d 'The language of the program: decides its interpreter before #! and the file\'s extension do.'
complete -c sbx -n '__sbx_is session exec' -s c -x -d 'Run CODE, a program in the language of --lang'
complete -c sbx -n '__sbx_is session exec' -l set -x -a '(__sbx_keys)=' -d 'Set one key of the policy, as in --set \'limits.memory="512M"\''
complete -c sbx -n '__sbx_is session exec' -l require -x -a 'memory.cgroup cpu.cgroup processes.cgroup landlock syscalls.named network.named trusted-policy all' -d 'Refuse to run when this could only be enforced in a weaker way, or not at all.'
complete -c sbx -n '__sbx_is session exec' -l timeout -x -d 'Wall time: limits.wall_time'
complete -c sbx -n '__sbx_is session exec' -l cpu-time -x -d 'CPU time of all processes together: limits.cpu_time'
complete -c sbx -n '__sbx_is session exec' -l output -x -d 'Bytes of output, each of stdout and stderr: output.stdout, output.stderr and output.passed'
complete -c sbx -n '__sbx_is session exec' -l env -x -d 'Pass a variable of the caller on by name, or set it to VALUE (visible in ps: see --env-fd)'
complete -c sbx -n '__sbx_is session exec' -l env-file -r -F -d 'Set variables from lines NAME=VALUE; empty lines and lines that begin with # are skipped.'
complete -c sbx -n '__sbx_is session exec' -l env-fd -x -d 'Like --env-file, from the open descriptor N; entries may end with zero bytes'
complete -c sbx -n '__sbx_is session exec' -l stdin -r -a 'inherit null' -d 'What the program reads on standard input.'
complete -c sbx -n '__sbx_is session exec' -s i -l interactive -d 'Give the program a terminal of the sandbox\'s own; if standard input is no terminal, pipes.'
complete -c sbx -n '__sbx_is session exec' -l json -d 'Write the record to stdout, with the program\'s output in it'
complete -c sbx -n '__sbx_is session exec' -l report -r -F -d 'Write the record to a file, in one step, at the end.'
complete -c sbx -n '__sbx_is session exec' -l report-fd -x -d 'Write the record to an open descriptor.'
complete -c sbx -n '__sbx_is session exec' -l events-fd -x -d 'Write what happens to an open descriptor while it happens, one JSON object a line.'
complete -c sbx -n '__sbx_is session exec' -l explain -d 'Name the paths that exist here, were looked for and are not granted, each with the line that would grant it'
complete -c sbx -n '__sbx_is session exec' -s q -l quiet -d 'Suppress messages, except errors that prevent the run.'
complete -c sbx -n '__sbx_is session exec' -s v -l verbose -d 'Say also what was bound and why, and list weaker enforcement.'
complete -c sbx -n '__sbx_is session exec' -l die-with-parent -d 'Cancel the call when the process that started sbx ends.'
complete -c sbx -n '__sbx_is session exec' -s d -l detach -d 'Run it in the background and print the number of the call.'
complete -c sbx -n '__sbx_is session exec' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session exec' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session exec' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session eval' -l lang -x -a 'python javascript typescript ruby perl r lua php bash sh c c++ go rust java' -d 'The language: python, javascript, r or bash'
complete -c sbx -n '__sbx_is session eval' -l context -x -d 'Which interpreter: each keeps a state of its own'
complete -c sbx -n '__sbx_is session eval' -s c -x -d 'The cell itself, instead of a file.'
complete -c sbx -n '__sbx_is session eval' -s i -l interactive -d 'Read cells from the terminal, with line editing, history and completion, until Ctrl-D.'
complete -c sbx -n '__sbx_is session eval' -l timeout -x -d 'Wall time of the cell: limits.wall_time, which it may only shorten'
complete -c sbx -n '__sbx_is session eval' -l output -x -d 'Bytes of output, each of stdout and stderr: output.stdout, output.stderr and output.passed'
complete -c sbx -n '__sbx_is session eval' -l json -d 'Print the record only, with the cell\'s output in it'
complete -c sbx -n '__sbx_is session eval' -l stream -d 'Print what happens while it happens, one JSON object a line; the last has the record.'
complete -c sbx -n '__sbx_is session eval' -l results -x -a '(__fish_complete_directories)' -d 'Write each value that is more than plain text to a file in DIR, and name it.'
complete -c sbx -n '__sbx_is session eval' -l die-with-parent -d 'Cancel the cell when the process that started sbx ends.'
complete -c sbx -n '__sbx_is session eval' -s q -l quiet -d 'Print no messages of sbx\'s own but errors.'
complete -c sbx -n '__sbx_is session eval' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session eval' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session eval' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session contexts' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session contexts' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session contexts' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session contexts' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session interrupt' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session interrupt' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session interrupt' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session interrupt' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session restart' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session restart' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session restart' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session restart' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session calls' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session calls' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session calls' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session calls' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session logs' -s f -l follow -d 'Go on printing until the call has ended.'
complete -c sbx -n '__sbx_is session logs' -l json -d 'Print what is there by now as JSON.'
complete -c sbx -n '__sbx_is session logs' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session logs' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session logs' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session wait' -l json -d 'Print the call\'s record on stdout.'
complete -c sbx -n '__sbx_is session wait' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session wait' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session wait' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session kill' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session kill' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session kill' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session kill' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session put' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session put' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session put' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session put' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session get' -l out -x -a '(__fish_complete_directories)' -d 'The directory to copy to; without it the current one.'
complete -c sbx -n '__sbx_is session get' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session get' -s q -l quiet -d 'Print nothing but errors.'
complete -c sbx -n '__sbx_is session get' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session get' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session get' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session ls' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session ls' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session ls' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session ls' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session changes' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session changes' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session changes' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session changes' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session diff' -l patch -d 'Print a patch that "git apply" takes'
complete -c sbx -n '__sbx_is session diff' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session diff' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session diff' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session diff' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session apply' -l yes -d 'Apply without asking.'
complete -c sbx -n '__sbx_is session apply' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session apply' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session apply' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session apply' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session keep' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session keep' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session keep' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session keep' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session list' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session list' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session list' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session show' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session show' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session show' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session show' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session stats' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session stats' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session stats' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session stats' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session extend' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session extend' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session extend' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session extend' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is session stop' -l all -d 'Stop all of them.'
complete -c sbx -n '__sbx_is session stop' -l keep -x -d 'Keep what the session has changed under a name: see sbx-changes(1).'
complete -c sbx -n '__sbx_is session stop' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is session stop' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is session stop' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is session stop' -F -a '(__sbx_sessions)'
complete -c sbx -n '__sbx_is changes list' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is changes list' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is changes list' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is changes show' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is changes show' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is changes show' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is changes show' -a '(__sbx_sets)'
complete -c sbx -n '__sbx_is changes diff' -l patch -d 'Print a patch that "git apply" takes'
complete -c sbx -n '__sbx_is changes diff' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is changes diff' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is changes diff' -a '(__sbx_sets)'
complete -c sbx -n '__sbx_is changes apply' -l yes -d 'Apply without asking.'
complete -c sbx -n '__sbx_is changes apply' -l json -d 'Print the answer as JSON.'
complete -c sbx -n '__sbx_is changes apply' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is changes apply' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is changes apply' -a '(__sbx_sets)'
complete -c sbx -n '__sbx_is changes drop' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is changes drop' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is changes drop' -a '(__sbx_sets)'
complete -c sbx -n '__sbx_is completions' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is completions' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is completions' -a 'bash zsh fish'
complete -c sbx -n '__sbx_is help' -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n '__sbx_is help' -s h -l help -d 'Print this help.'
complete -c sbx -n '__sbx_is help' -a '(__sbx_commands)'
complete -c sbx -n __sbx_run_options -F -a '(__fish_complete_command)'
complete -c sbx -n __sbx_run_command -F -a '(__sbx_complete_command)'
complete -c sbx -n __sbx_run_options -l lang -x -a 'python javascript typescript ruby perl r lua php bash sh c c++ go rust java' -d 'The language of the program: decides its interpreter before #! and the file\'s extension do.'
complete -c sbx -n __sbx_run_options -s c -x -d 'Run CODE, a program in the language of --lang'
complete -c sbx -n __sbx_run_options -l session -x -a '(__sbx_session_names)' -d 'Run it as a call of this session, which is started first with this policy if it isn\'t there'
complete -c sbx -n __sbx_run_options -l cells -r -F -d 'Run the code cells of a notebook, or of a script that is divided by lines # %% (.js: // %%), one after the other in one interpreter'
complete -c sbx -n __sbx_run_options -l keep-going -d 'With --cells, go on after a cell that raised an error'
complete -c sbx -n __sbx_run_options -l parameter -x -d 'With --cells, give a variable this value, in a cell after the one that is tagged "parameters"'
complete -c sbx -n __sbx_run_options -s p -l policy -r -F -a '(__sbx_policies)' -d 'A policy by name, or a policy file'
complete -c sbx -n __sbx_run_options -l set -x -a '(__sbx_keys)=' -d 'Set one key of the policy, as in --set \'limits.memory="512M"\''
complete -c sbx -n __sbx_run_options -l require -x -a 'memory.cgroup cpu.cgroup processes.cgroup landlock syscalls.named network.named trusted-policy all' -d 'Refuse to run when this could only be enforced in a weaker way, or not at all.'
complete -c sbx -n __sbx_run_options -l timeout -x -d 'Wall time: limits.wall_time'
complete -c sbx -n __sbx_run_options -l cpu-time -x -d 'CPU time of all processes together: limits.cpu_time'
complete -c sbx -n __sbx_run_options -l cpus -x -d 'CPUs used at once, fractions allowed: limits.cpus'
complete -c sbx -n __sbx_run_options -l memory -x -d 'Memory of all processes together: limits.memory'
complete -c sbx -n __sbx_run_options -l processes -x -d 'Processes and threads: limits.processes'
complete -c sbx -n __sbx_run_options -l disk -x -d 'Space for everything the program writes that is not granted: limits.disk'
complete -c sbx -n __sbx_run_options -l output -x -d 'Bytes of output, each of stdout and stderr: output.stdout, output.stderr and output.passed'
complete -c sbx -n __sbx_run_options -l workspace -x -a '(__fish_complete_directories)' -d 'The program\'s working directory, and how it is given: overlay (changes vanish), read-only, read-write (changes are real) or empty'
complete -c sbx -n __sbx_run_options -l read -r -F -d 'Make a file or directory of the host readable, at TARGET if given'
complete -c sbx -n __sbx_run_options -l write -r -F -d 'Make a file or directory of the host writable: changes are real, while the program runs.'
complete -c sbx -n __sbx_run_options -l in -r -F -d 'Copy a file in before the start, to the working directory or to TARGET'
complete -c sbx -n __sbx_run_options -l venv -x -a '(__fish_complete_directories)' -d 'Use the interpreter and packages of a virtual environment, read-only.'
complete -c sbx -n __sbx_run_options -l net -x -a 'none host' -d 'No network but the sandbox\'s own loopback, or the host\'s network.'
complete -c sbx -n __sbx_run_options -l allow-host -x -d 'Let the program reach this host: network.allow, with network.mode "allow-list"'
complete -c sbx -n __sbx_run_options -l env -x -d 'Pass a variable of the caller on by name, or set it to VALUE (visible in ps: see --env-fd)'
complete -c sbx -n __sbx_run_options -l env-file -r -F -d 'Set variables from lines NAME=VALUE; empty lines and lines that begin with # are skipped.'
complete -c sbx -n __sbx_run_options -l env-fd -x -d 'Like --env-file, from the open descriptor N; entries may end with zero bytes'
complete -c sbx -n __sbx_run_options -l stdin -r -a 'inherit null' -d 'What the program reads on standard input.'
complete -c sbx -n __sbx_run_options -s i -l interactive -d 'Give the program a terminal of the sandbox\'s own; if standard input is no terminal, pipes.'
complete -c sbx -n __sbx_run_options -l out -x -a '(__fish_complete_directories)' -d 'After the run, copy the files that the program created in its working directory to DIR: all, or those that match --collect or else filesystem.outputs.collect.'
complete -c sbx -n __sbx_run_options -l collect -x -d 'With --out, copy only files that match, created or modified'
complete -c sbx -n __sbx_run_options -l diff -d 'Show on stderr what the program changed'
complete -c sbx -n __sbx_run_options -l apply -d 'Apply the program\'s changes (only files matching GLOB, if given) to the workspace'
complete -c sbx -n __sbx_run_options -l yes -d 'With --apply, do not ask; apply only if the command exits with status 0.'
complete -c sbx -n __sbx_run_options -l keep -x -d 'Keep the changes under a name, to look at and apply them later: see sbx-changes(1).'
complete -c sbx -n __sbx_run_options -l json -d 'Write the record to stdout, with the program\'s output in it'
complete -c sbx -n __sbx_run_options -l report -r -F -d 'Write the record to a file, in one step, at the end.'
complete -c sbx -n __sbx_run_options -l report-fd -x -d 'Write the record to an open descriptor.'
complete -c sbx -n __sbx_run_options -l events-fd -x -d 'Write what happens to an open descriptor while it happens, one JSON object a line.'
complete -c sbx -n __sbx_run_options -l explain -d 'Name the paths that exist here, were looked for and are not granted, each with the line that would grant it'
complete -c sbx -n __sbx_run_options -l github -d 'In a GitHub workflow: no line that the program prints is taken for a workflow command, and what went wrong is an annotation'
complete -c sbx -n __sbx_run_options -l die-with-parent -d 'Cancel the run when the process that started sbx ends'
complete -c sbx -n __sbx_run_options -l dry-run -d 'Print what would be done and why; run nothing'
complete -c sbx -n __sbx_run_options -l trace-time -d 'Print the stages of the start, in microseconds.'
complete -c sbx -n __sbx_run_options -s q -l quiet -d 'Suppress messages, except errors that prevent the run.'
complete -c sbx -n __sbx_run_options -s v -l verbose -d 'Say also what was bound and why, and list weaker enforcement.'
complete -c sbx -n __sbx_run_options -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n __sbx_run_options -s h -l help -d 'Print this help.'
