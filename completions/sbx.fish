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
            case --lang -c -p --policy --set --require --timeout --cpu-time --cpus --memory --processes --disk --output --workspace --read --write --in --venv --net --allow-host --env --env-file --env-fd --stdin --out --keep --report --report-fd --color
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
    __fish_seen_subcommand_from run; and not __sbx_operand >/dev/null
end

function __sbx_run_command
    __sbx_operand >/dev/null
end

function __sbx_complete_command
    set -l words (commandline -opc) (commandline -ct)
    set -l first (__sbx_operand); or return
    complete -C (string join ' ' -- $words[$first..-1])
end

complete -c sbx -f
complete -c sbx -n __fish_use_subcommand -a run -d 'Run a script or a command in a sandbox.'
complete -c sbx -n __fish_use_subcommand -a completions -d 'Print a completion script for a shell.'
complete -c sbx -n __fish_use_subcommand -a help -d 'Print the help of a command.'
complete -c sbx -n __fish_use_subcommand -a policy -d 'Look at policies.'
complete -c sbx -n '__fish_seen_subcommand_from policy' -a 'list show check explain'
complete -c sbx -n '__fish_seen_subcommand_from show check' -F -a 'default strict data-analysis python node shell ci-untrusted offline-build web-fetch'
complete -c sbx -n '__fish_seen_subcommand_from completions' -a 'bash zsh fish'
complete -c sbx -n __sbx_run_options -F -a '(__fish_complete_command)'
complete -c sbx -n __sbx_run_command -F -a '(__sbx_complete_command)'
complete -c sbx -n __sbx_run_options -l lang -x -d 'The language of the program: decides its interpreter before #! and the file\'s extension do.'
complete -c sbx -n __sbx_run_options -s c -x -d 'Run CODE, a program in the language of --lang'
complete -c sbx -n __sbx_run_options -s p -l policy -r -a 'default strict data-analysis python node shell ci-untrusted offline-build web-fetch' -d 'A policy by name, or a policy file'
complete -c sbx -n __sbx_run_options -l set -x -d 'Set one key of the policy, as in --set \'limits.memory="512M"\''
complete -c sbx -n __sbx_run_options -l require -x -a 'memory.cgroup cpu.cgroup processes.cgroup landlock syscalls.named network.named trusted-policy all' -d 'Refuse to run when this could only be enforced by weaker means, or not at all.'
complete -c sbx -n __sbx_run_options -l timeout -x -d 'Wall time: limits.wall_time.'
complete -c sbx -n __sbx_run_options -l cpu-time -x -d 'CPU time of all processes together: limits.cpu_time.'
complete -c sbx -n __sbx_run_options -l cpus -x -d 'CPUs used at once, fractions allowed: limits.cpus.'
complete -c sbx -n __sbx_run_options -l memory -x -d 'Memory of all processes together: limits.memory.'
complete -c sbx -n __sbx_run_options -l processes -x -d 'Processes and threads: limits.processes.'
complete -c sbx -n __sbx_run_options -l disk -x -d 'Space for everything the program writes that is not granted: limits.disk.'
complete -c sbx -n __sbx_run_options -l output -x -d 'Bytes of output, each of stdout and stderr: output.stdout and output.stderr.'
complete -c sbx -n __sbx_run_options -l workspace -r -d 'The program\'s working folder, and how it is given: overlay (changes vanish), read-only, read-write (changes are real) or empty.'
complete -c sbx -n __sbx_run_options -l read -r -d 'Make a file or folder of the host readable, at TARGET if given'
complete -c sbx -n __sbx_run_options -l write -r -d 'Make a file or folder of the host writable: changes are real, while the program runs.'
complete -c sbx -n __sbx_run_options -l in -r -d 'Copy a file in before the start'
complete -c sbx -n __sbx_run_options -l venv -r -d 'Use the interpreter and packages of a virtual environment, read-only.'
complete -c sbx -n __sbx_run_options -l net -x -a 'none host' -d 'No network but the sandbox\'s own loopback, or the host\'s network.'
complete -c sbx -n __sbx_run_options -l allow-host -x -d 'Let the program reach this host: network.allow, with network.mode "allow-list".'
complete -c sbx -n __sbx_run_options -l env -x -d 'Pass a variable of the caller on by name, or set it to VALUE (visible in ps: see --env-fd).'
complete -c sbx -n __sbx_run_options -l env-file -r -d 'Set variables from lines NAME=VALUE; empty lines and lines that begin with # are skipped.'
complete -c sbx -n __sbx_run_options -l env-fd -x -d 'The same from an open descriptor, divided by zero bytes where there are any'
complete -c sbx -n __sbx_run_options -l stdin -r -a 'inherit null' -d 'What the program reads on standard input.'
complete -c sbx -n __sbx_run_options -s i -l interactive -d 'Give the program a terminal of the sandbox\'s own.'
complete -c sbx -n __sbx_run_options -l out -r -d 'Copy what the program made, and filesystem.outputs.collect means, to a folder at the end.'
complete -c sbx -n __sbx_run_options -l diff -d 'Show on stderr what the program changed in a copy-on-write workspace.'
complete -c sbx -n __sbx_run_options -l apply -d 'Do the program\'s changes, or those that GLOB means, to the workspace for real'
complete -c sbx -n __sbx_run_options -l yes -d 'Apply without asking, but only what a command that exited with 0 did.'
complete -c sbx -n __sbx_run_options -l keep -x -d 'Keep the changes under a name'
complete -c sbx -n __sbx_run_options -l json -d 'Write the record to stdout; the program\'s output stands in it'
complete -c sbx -n __sbx_run_options -l report -r -d 'Write the record to a file, in one step, at the end.'
complete -c sbx -n __sbx_run_options -l report-fd -x -d 'Write the record to an open descriptor.'
complete -c sbx -n __sbx_run_options -l explain -d 'Name the paths that were not granted and were looked for'
complete -c sbx -n __sbx_run_options -l dry-run -d 'Print what would be done and why; run nothing.'
complete -c sbx -n __sbx_run_options -l trace-time -d 'Print the stages of the start, in microseconds.'
complete -c sbx -n __sbx_run_options -s q -l quiet -d 'Say nothing on stderr unless the program can\'t be run.'
complete -c sbx -n __sbx_run_options -s v -l verbose -d 'Say also what was bound and why, and what is enforced by weaker means.'
complete -c sbx -n __sbx_run_options -l color -x -a 'auto always never' -d 'Colour sbx\'s own messages.'
complete -c sbx -n __sbx_run_options -s h -l help -d 'Print this help.'
