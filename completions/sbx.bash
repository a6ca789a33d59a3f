# bash completion for sbx
# The program itself says what fits.
_sbx() {
    local how word cur=${COMP_WORDS[COMP_CWORD]} IFS=$'\n'
    COMPREPLY=()
    [[ $cur == = ]] && cur=
    {
        read -r how
        while IFS=$'\t' read -r word _; do
            printf -v word %q "$word"
            COMPREPLY+=("$word")
        done
    } < <(sbx __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case $how in
    nospace) compopt -o nospace 2>/dev/null ;;
    files) COMPREPLY+=($(compgen -f -- "$cur")) && compopt -o filenames 2>/dev/null ;;
    directories) COMPREPLY+=($(compgen -d -- "$cur")) && compopt -o filenames 2>/dev/null ;;
    program*)
        how=${how#program }
        if declare -F _command_offset >/dev/null && ((how < COMP_CWORD)); then
            unset IFS && _command_offset "$how"
        else
            COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
            compopt -o filenames 2>/dev/null
        fi
        ;;
    esac
}

complete -F _sbx sbx
