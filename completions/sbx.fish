# fish completion for sbx
# The program itself says what fits.
function __sbx_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (sbx __complete $words[2..-1] 2>/dev/null)
    test (count $lines) -gt 1; and printf '%s\n' $lines[2..-1]
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case directories
            __fish_complete_directories (commandline -ct)
        case 'program *'
            set -l first (math (string sub -s 9 -- $lines[1]) + 1)
            complete -C (string join ' ' -- (string escape -- $words[$first..-2]) (commandline -ct))
    end
end

complete -c sbx -f -a '(__sbx_complete)'
