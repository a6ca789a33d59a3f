# Driver of a bash context: runs cells in one bash that keeps its state. bash 5.0 and later, no other program.
#
# Read from a file by an interactive bash without job control, whose standard input is empty (drivers.cpp), with
# descriptor 3 for requests and 4 for replies. A request is its length in decimal digits, a line feed, and that many
# bytes: nonce, space, count, line feed, code. A reply is one as of every driver, in JSON.
#
# The shell is interactive because only such a one throws everything away at SIGINT and goes on: functions, loops, eval
# and redirections, however deep, back to where it asks for a command. There it runs PROMPT_COMMAND, which is the loop
# below and never returns, so that no command is ever asked for. `exit` and a failure under `set -e` leave a cell in the
# same way: by a SIGINT to the shell itself.
#
# Everything here is the untrusted side. `builtin` and the backslashes keep functions and aliases of the same names out;
# whoever defines a function `builtin` has spoilt this context.

exec 2>/dev/null
shopt -u checkwinsize
set +o history +o histexpand
unset -v PS1 PS2 HISTFILE MAILCHECK TMOUT
declare +x PROMPT_COMMAND

# What bash saves for a redirection it puts at 10, close-on-exec, and copies of that are so too; there is no other way to
# say it. The streams get high numbers, as the channel does: from here on 0 to 2 are the null device but while a cell runs.
exec 0>&1; { exec 231>&10; } 0</dev/null
exec 0>&6 6>&-; { exec 232>&10; } 0</dev/null
exec 0<&3 3<&-; { exec 233<&10; } 0</dev/null
exec 0>&4 4>&-; { exec 234>&10; } 0</dev/null
exec 0</dev/null 1>/dev/null 5<&-

readonly __sbx_pid=$BASHPID
__sbx_open=    # the nonce of the cell that runs
__sbx_count=0
__sbx_code=
__sbx_text=    # what is evaluated for it
__sbx_status=0 # of the last cell, and so its $?
__sbx_thrown=  # it was left
__sbx_why=     # for what, where not for an interrupt
__sbx_error=
__sbx_revived= # the shell was about to end

# Messages.

__sbx_send() {
  \builtin local LC_ALL=C
  \builtin printf '%d\n%s' "${#1}" "$1" >&234 || \builtin exit 1
}

# Sets __sbx_quoted to the text as a string of JSON, cut.
__sbx_quote() {
  \builtin local LC_ALL=C "__sbx_left=${1:0:2000}" __sbx_size __sbx_char
  __sbx_quoted=
  while [[ $__sbx_left ]]; do
    __sbx_size=1 __sbx_char=${__sbx_left:0:1}
    case $__sbx_left in
      [\"\\]*) __sbx_char=\\$__sbx_char ;;
      [[:cntrl:]]*) \builtin printf -v __sbx_char '\\u%04x' "'$__sbx_char" ;;
      [\ -~]*) ;;
      [$'\xc2'-$'\xdf'][$'\x80'-$'\xbf']*) __sbx_size=2 ;;
      $'\xe0'[$'\xa0'-$'\xbf'][$'\x80'-$'\xbf']* | $'\xed'[$'\x80'-$'\x9f'][$'\x80'-$'\xbf']*) __sbx_size=3 ;;
      [$'\xe1'-$'\xec'$'\xee'$'\xef'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) __sbx_size=3 ;;
      $'\xf0'[$'\x90'-$'\xbf'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) __sbx_size=4 ;;
      [$'\xf1'-$'\xf3'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) __sbx_size=4 ;;
      $'\xf4'[$'\x80'-$'\x8f'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) __sbx_size=4 ;;
      *) __sbx_char='\ufffd' ;;
    esac
    ((__sbx_size == 1)) || __sbx_char=${__sbx_left:0:__sbx_size}
    __sbx_quoted+=$__sbx_char
    __sbx_left=${__sbx_left:__sbx_size}
  done
  __sbx_quoted=\"$__sbx_quoted\"
}

# Answers the cell that runs. $1: what else is said about its end.
__sbx_answer() {
  \builtin local "__sbx_nonce=$__sbx_open" __sbx_ok=true __sbx_exit=
  __sbx_open=
  [[ $__sbx_error ]] && \__sbx_send "{\"event\":\"error\",\"nonce\":\"$__sbx_nonce\",$__sbx_error}"
  if ((__sbx_status != 0)); then
    __sbx_ok=false
    [[ $__sbx_why == interrupt ]] || __sbx_exit=",\"exit\":$__sbx_status"
  elif [[ $__sbx_why == exit ]]; then
    __sbx_exit=,\"exit\":0
  fi
  \__sbx_send "{\"event\":\"done\",\"nonce\":\"$__sbx_nonce\",\"count\":$__sbx_count,\"ok\":$__sbx_ok$__sbx_exit$1}"
}

# Sets __sbx_code to what the next request is; false: there will be none.
__sbx_receive() {
  \builtin local LC_ALL=C __sbx_size= __sbx_char= __sbx_head
  [[ $LC_ALL == C ]] || return # else characters would be counted
  while \builtin read -r -N 1 -u 233 __sbx_char && [[ $__sbx_char == [0-9] ]]; do
    __sbx_size+=$__sbx_char
  done
  [[ $__sbx_size$__sbx_char ]] || \builtin exit 0 # the end of the requests
  [[ $__sbx_char == $'\n' ]] || return
  \builtin read -r -N "$__sbx_size" -u 233 __sbx_code || return
  ((${#__sbx_code} == __sbx_size)) || return
  __sbx_head=${__sbx_code%%$'\n'*}
  __sbx_code=${__sbx_code#*$'\n'}
  __sbx_count=${__sbx_head#* }
  __sbx_open=${__sbx_head% *}
}

# Cells.

# Sets __sbx_text to the cell as one command: what the shell gives up, for an unset variable under `set -u` say, is then
# the cell and not the line. `case` in braces: no single word too many in the cell closes both. False: it can't be parsed.
__sbx_parse() {
  \builtin local - __sbx_first= __sbx_last=$'\n;;\nesac\n}'
  \builtin set +e # a condition hides nothing from `builtin eval`
  # The grammar that the cell itself asks for.
  if [[ $__sbx_code == *extglob* ]] && ! \builtin shopt -q extglob; then
    \builtin shopt -s extglob
    __sbx_first='\builtin shopt -u extglob; '
  fi
  \builtin eval "{ case 0 in 1) $__sbx_first$__sbx_code$__sbx_last" || {
    [[ $__sbx_first ]] && \builtin shopt -u extglob
    return 1
  }
  __sbx_text=$'\n{ case 1 in 1) '"$__sbx_first$__sbx_code$__sbx_last"' 0</dev/null 1>&231 2>&232 235<&233
__sbx_status=$?'
}

# Sets the error of a cell that can't be parsed. A subshell says it, with the end left out that the cell has none of.
__sbx_misspelt() {
  \builtin local __sbx_said __sbx_line=null
  __sbx_said=$(\builtin set +e; \builtin trap - ERR; { \builtin eval "{ case 0 in 1) $__sbx_code"; } 2>&1)
  __sbx_said=${__sbx_said//bash: eval: /}
  __sbx_said=${__sbx_said//bash: warning/warning}
  __sbx_said=${__sbx_said/"{ case 0 in 1) "/}
  [[ $__sbx_said =~ line\ ([0-9]+): ]] && __sbx_line=${BASH_REMATCH[1]}
  \__sbx_quote "$__sbx_said"
  __sbx_error="\"name\":\"SyntaxError\",\"value\":$__sbx_quoted,\"traceback\":$__sbx_quoted,\"line\":$__sbx_line"
  __sbx_status=2
}

# Ends the cell that ran, and waits for the next one. No interrupt can come in meanwhile.
__sbx_next() {
  \builtin trap '' INT
  if [[ $__sbx_thrown && ! $__sbx_why ]]; then
    __sbx_why=interrupt __sbx_status=130
    __sbx_error='"name":"Interrupt","value":"SIGINT ended the cell","traceback":"","line":null'
  fi
  if [[ $__sbx_revived ]]; then
    __sbx_revived=
    \builtin trap "$__sbx_at_exit" EXIT
  fi
  while :; do
    [[ $__sbx_open ]] && \__sbx_answer ''
    __sbx_thrown= __sbx_why= __sbx_error=
    \__sbx_receive || return
    \__sbx_parse && break
    \__sbx_misspelt
  done
  # Without a trap bash forgets a signal that comes while it runs a trap, as the one of ERR.
  \builtin trap '\__sbx_throw' INT
}

# Ends a child that has just been forked and got an interrupt as if it were the shell. It has to end by the signal: bash
# forgets its own interrupt where the command in front ended otherwise.
__sbx_end_child() {
  BASH_ENV= \builtin exec "$BASH" -c 'kill -INT $$'
  \builtin exit 130
}

# The shell asks for a command: it has begun, or was thrown here.
__sbx_enter() {
  [[ $BASHPID == "$__sbx_pid" ]] || \__sbx_end_child
  __sbx_thrown=$__sbx_open
}

# The status of the cell before.
__sbx_last() { return "$__sbx_status"; }

# Leaves the cell, from anywhere in it.
__sbx_throw() {
  [[ $BASHPID == "$__sbx_pid" ]] || \__sbx_end_child
  \builtin trap - INT
  \builtin kill -INT "$__sbx_pid"
  :
}

# Ends the cell and not the context; in a subshell it is bash's own.
exit() {
  \builtin local "__sbx_given=${1-$?}"
  [[ $BASHPID == "$__sbx_pid" && $__sbx_open ]] || \builtin exit "$@"
  if [[ ! $__sbx_given =~ ^[-+]?[0-9]+$ ]]; then
    \builtin printf 'bash: exit: %s: numeric argument required\n' "$__sbx_given" >&2
    __sbx_given=2
  fi
  __sbx_status=$((10#${__sbx_given#[-+]} & 255)) __sbx_why=exit
  [[ $__sbx_given != -* ]] || __sbx_status=$((-__sbx_status & 255))
  \__sbx_throw
}

# A command failed; under `set -e` that ends the cell.
__sbx_failed() {
  [[ $BASHPID == "$__sbx_pid" && $__sbx_open ]] || return 0
  __sbx_status=$1 __sbx_why=failed
  \builtin local "__sbx_line=$3" "__sbx_place=line $3: "
  ((${#FUNCNAME[@]} == 1)) || __sbx_line=null __sbx_place= # it would be that of the function
  \__sbx_quote "$__sbx_place$2: exit status $1"
  __sbx_error="\"name\":\"ExitStatus\",\"value\":\"$1\",\"traceback\":$__sbx_quoted,\"line\":$__sbx_line"
  \__sbx_throw
}

# The shell ends. Where bash only has printed an error under `set -e`, of an unset variable for example, it is still in the
# cell, as the copy of the channel shows that each has, and can be thrown out of it. After `builtin exit` it can't, and not
# where a cell has replaced the trap that foresees a failure.
__sbx_leave() {
  [[ $__sbx_open && $BASHPID == "$__sbx_pid" ]] || return
  __sbx_status=$1 __sbx_why=exit
  if { :; } 0<&235 && [[ $- == *E* && $(\builtin trap -p ERR) == *__sbx_failed* ]]; then
    __sbx_why=failed __sbx_revived=1
    \__sbx_throw
  fi
  ((__sbx_status <= 128)) || return # maybe a signal, of which others know more
  \__sbx_answer ',"ended":true'
}

readonly -f __sbx_send __sbx_quote __sbx_answer __sbx_receive __sbx_parse __sbx_misspelt __sbx_next __sbx_end_child __sbx_enter __sbx_last __sbx_throw __sbx_failed __sbx_leave
set -o errtrace
trap 'case $- in *e*) \__sbx_failed "$?" "$BASH_COMMAND" "$LINENO" || :; esac' ERR
readonly __sbx_at_exit='\__sbx_leave "$?" || :'
trap "$__sbx_at_exit" EXIT
trap : TERM # an interactive shell ignores it, and forgets that only with a trap
trap - TERM

# A cell can leave the loop by `break`. One line: those of the cell are counted from it on.
readonly PROMPT_COMMAND='\__sbx_enter || :; while \__sbx_next; do if \__sbx_last; then \builtin eval "$__sbx_text"; else \builtin eval "$__sbx_text"; fi; done; [[ $__sbx_open ]] && { __sbx_why=break __sbx_status=0; \__sbx_throw; }'

__sbx_send "{\"event\":\"ready\",\"language\":\"bash\",\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\",\"shell\":\"plain\"}"
