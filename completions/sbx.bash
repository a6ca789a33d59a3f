# bash completion for sbx; made by sbx-docs from the command line's own tree; not edited by hand

_sbx_run() {
    local i=2 word policies="default strict data-analysis python node shell ci-untrusted offline-build web-fetch"
    while ((i < COMP_CWORD)); do
        word=${COMP_WORDS[i]}
        case $word in
        --) _sbx_command $((i + 1)); return ;;
        --lang|-c|-p|--policy|--set|--require|--timeout|--cpu-time|--cpus|--memory|--processes|--disk|--output|--workspace|--read|--write|--in|--venv|--net|--allow-host|--env|--env-file|--env-fd|--stdin|--out|--keep|--report|--report-fd|--color) ((i += 2)); continue ;;
        -?*) ((i += 1)); continue ;;
        *) _sbx_command $i; return ;;
        esac
    done
    case $prev in
        --lang) COMPREPLY=() ;;
        -c) COMPREPLY=() ;;
        -p|--policy) COMPREPLY=($(compgen -W "$policies" -- "$cur") $(compgen -f -- "$cur")) ;;
        --set) COMPREPLY=() ;;
        --require) COMPREPLY=($(compgen -W "memory.cgroup cpu.cgroup processes.cgroup landlock syscalls.named network.named trusted-policy all" -- "$cur")) ;;
        --timeout) COMPREPLY=() ;;
        --cpu-time) COMPREPLY=() ;;
        --cpus) COMPREPLY=() ;;
        --memory) COMPREPLY=() ;;
        --processes) COMPREPLY=() ;;
        --disk) COMPREPLY=() ;;
        --output) COMPREPLY=() ;;
        --workspace) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --read) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --write) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --in) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --venv) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --net) COMPREPLY=($(compgen -W "none host" -- "$cur")) ;;
        --allow-host) COMPREPLY=() ;;
        --env) COMPREPLY=() ;;
        --env-file) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --env-fd) COMPREPLY=() ;;
        --stdin) COMPREPLY=($(compgen -W "inherit null" -- "$cur")) ;;
        --out) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --keep) COMPREPLY=() ;;
        --report) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --report-fd) COMPREPLY=() ;;
        --color) COMPREPLY=($(compgen -W "auto always never" -- "$cur")) ;;
        *)
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--lang -c -p --policy --set --require --timeout --cpu-time --cpus --memory --processes --disk --output --workspace --read --write --in --venv --net --allow-host --env --env-file --env-fd --stdin -i --interactive --out --diff --apply --yes --keep --json --report --report-fd --explain --dry-run --trace-time -q --quiet -v --verbose --color -h --help" -- "$cur"))
            else
                COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
            fi
            ;;
    esac
}

# The words from index $1 on are a command line of their own.
_sbx_command() {
    if declare -F _command_offset >/dev/null && (($1 < COMP_CWORD)); then
        _command_offset "$1"
    else
        COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
    fi
}

_sbx() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "run policy completions help --help --version" -- "$cur"))
        return
    fi
    case ${COMP_WORDS[1]} in
    run) _sbx_run ;;
    policy)
        if ((COMP_CWORD == 2)); then
            COMPREPLY=($(compgen -W "list show check explain" -- "$cur"))
        else
            COMPREPLY=($(compgen -W "default strict data-analysis python node shell ci-untrusted offline-build web-fetch --effective --help" -- "$cur") $(compgen -f -- "$cur"))
        fi
        ;;
    completions) COMPREPLY=($(compgen -W "bash zsh fish" -- "$cur")) ;;
    help) COMPREPLY=($(compgen -W "run policy completions help" -- "$cur")) ;;
    esac
}

complete -o filenames -F _sbx sbx
