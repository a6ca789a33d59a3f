# Driver of a bash context: runs cells in one bash that keeps its state. bash 5.0 and later, no other program.
#
# Read from a file by an interactive bash without job control, whose standard input is empty (drivers.cpp), with
# descriptor 3 for requests and 4 for replies. A request is its length in decimal digits, a line feed, and that many
# bytes: nonce, space, count, line feed, code. Where the cell has variables or a directory of its own, the count is followed
# by a space and a size, and so many bytes before the code are commands that make them. A question about code that does not run has its name in place of the count,
# "completeness" or "completion". A reply is one as of every driver, in JSON.
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
# say it. The streams get high numbers, as the channel does, which fit limits.open_files of "strict": from here on 0 to 2 are the null device but while a cell runs.
exec 0>&1; { exec 121>&10; } 0</dev/null
exec 0>&6 6>&-; { exec 122>&10; } 0</dev/null
exec 0<&3 3<&-; { exec 123<&10; } 0</dev/null
exec 0>&4 4>&-; { exec 124>&10; } 0</dev/null
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
__sbx_given=   # makes what is the cell's own
__sbx_undo=    # and gives back what that replaced

# Messages.

__sbx_send() {
  \builtin local LC_ALL=C
  \builtin printf '%d\n%s' "${#1}" "$1" >&124 || \builtin exit 1
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
  while \builtin read -r -N 1 -u 123 __sbx_char && [[ $__sbx_char == [0-9] ]]; do
    __sbx_size+=$__sbx_char
  done
  [[ $__sbx_size$__sbx_char ]] || \builtin exit 0 # the end of the requests
  [[ $__sbx_char == $'\n' ]] || return
  \builtin read -r -N "$__sbx_size" -u 123 __sbx_code || return
  ((${#__sbx_code} == __sbx_size)) || return
  __sbx_head=${__sbx_code%%$'\n'*}
  __sbx_code=${__sbx_code#*$'\n'}
  __sbx_open=${__sbx_head%% *}
  __sbx_head=${__sbx_head#* }
  __sbx_count=${__sbx_head%% *}
  __sbx_given=
  [[ $__sbx_head == *\ * ]] || return 0
  __sbx_given=${__sbx_code:0:${__sbx_head#* }}
  __sbx_code=${__sbx_code:${__sbx_head#* }}
}

# What is the cell's own, and gone after it.

__sbx_refuse() {
  \__sbx_quote "$2"
  __sbx_status=1 __sbx_why=exit
  __sbx_error="\"name\":\"$1\",\"value\":$__sbx_quoted,\"traceback\":\"\",\"line\":null$3"
  \builtin return 1
}

# $1: a variable of the environment, $2: its value.
__sbx_set() {
  \builtin local "__sbx_saved=$(\builtin declare -p -- "$1" 2>/dev/null)" __sbx_attributes
  \builtin declare -gx "$1=$2" || { \__sbx_refuse VariableError "$1 can't be set"; \builtin return 1; }
  __sbx_undo+="\\builtin unset -v $1"$'\n'
  [[ $__sbx_saved == declare\ * ]] || \builtin return 0
  __sbx_saved=${__sbx_saved#declare -}
  # Its attributes, and then its value: \builtin takes no array for an argument.
  __sbx_attributes=${__sbx_saved%% *}
  __sbx_undo+="\\builtin declare -g${__sbx_attributes#-} $1"$'\n'
  [[ $__sbx_saved != *=* ]] || __sbx_undo+=${__sbx_saved#* }$'\n'
}

# $1: where the cell begins. bash does not tell errno.
__sbx_change_to() {
  \builtin local "__sbx_to=$1" "__sbx_from=$PWD" "__sbx_before=${OLDPWD-}" __sbx_errno=2 __sbx_quoted_from
  [[ $__sbx_to != \~ && $__sbx_to != \~/* ]] || __sbx_to=$HOME${__sbx_to:1}
  [[ $__sbx_to == /* ]] || __sbx_to=./$__sbx_to
  if \builtin cd -- "$__sbx_to"; then
    \builtin printf -v __sbx_quoted_from '%q' "$__sbx_from"
    __sbx_undo+="\\builtin cd -- $__sbx_quoted_from || \\builtin cd /"$'\n'
    \builtin printf -v __sbx_quoted_from '%q' "$__sbx_before"
    __sbx_undo+="OLDPWD=$__sbx_quoted_from"$'\n'
    \builtin return 0
  fi
  __sbx_from=$__sbx_to
  if [[ -d $__sbx_to ]]; then
    __sbx_errno=13
  elif [[ -e $__sbx_to ]]; then
    __sbx_errno=20
  else
    while [[ ! -e $__sbx_from && $__sbx_from == */* ]]; do __sbx_from=${__sbx_from%/*}; done
    [[ ! -d $__sbx_from || -x $__sbx_from ]] || __sbx_errno=13
    [[ -z $__sbx_from || -d $__sbx_from || ! -e $__sbx_from ]] || __sbx_errno=20
  fi
  \__sbx_refuse DirectoryError "cannot change to '$1'" ",\"errno\":$__sbx_errno"
}

# Options of the cells must not end or trace this.
__sbx_give() {
  \builtin local -
  \builtin set +eux
  \builtin eval "$__sbx_given"
}

__sbx_take_back() {
  \builtin local - "__sbx_text_of_undo=$__sbx_undo"
  \builtin set +eux
  __sbx_undo=
  \builtin eval "$__sbx_text_of_undo"
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
  __sbx_text=$'\n{ case 1 in 1) '"$__sbx_first$__sbx_code$__sbx_last"' 0</dev/null 1>&121 2>&122 125<&123
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

# Questions about code that does not run.
#
# A subshell looks for the answer, so that nothing changes here. It has a cell's aliases, functions and variables, and runs
# none of the code. What the session can notice is that a child has ended: a trap of CHLD runs.

# Takes back what the session has set and this code can't have. SIGINT ends the subshell, as nobody waits for it any more.
__sbx_settle() {
  \builtin trap - DEBUG ERR RETURN INT
  \builtin set +efuvx +o posix
  \builtin shopt -u nocasematch nocaseglob failglob dotglob
  \builtin shopt -s nullglob
  \builtin unset -v GLOBIGNORE GLOBSORT
  LC_ALL=C BASH_ARGV0=bash # what the parser says is in English, and its lines begin with "bash:"
}

# Whether the parser takes the text; sets __sbx_said to its words. The text does not run, whatever it closes: it goes on a
# line whose first command ends the subshell.
__sbx_parses() {
  __sbx_said=$({ \builtin eval "\\builtin exit 3; $1"; } 2>&1)
  (($? == 3))
}

# Whether all that the parser misses is the rest of the code. It is asked twice, because a word too many can close the inner
# one of the two commands that are open around the code, and no word closes both kinds.
__sbx_is_cut() {
  \builtin local __sbx_around
  \builtin local "__sbx_at_end=(^|"$'\n'")bash: ([a-z ]+: )?line [0-9]+: "
  __sbx_at_end+="(syntax error: unexpected end of file|unexpected EOF|unexpected token .EOF')"
  for __sbx_around in '{ case 0 in 1) ' 'case 0 in 1) { '; do
    \__sbx_parses "$__sbx_around$__sbx_code"$'\n' && return 1
    [[ $__sbx_said =~ $__sbx_at_end ]] || return 1
  done
}

# Whether code that can be parsed ends with a backslash that continues its line. In a comment it does not: there an open
# parenthesis in its place does no harm.
__sbx_goes_on() {
  \builtin local "__sbx_end=${__sbx_code##*[^\\]}"
  ((${#__sbx_end} % 2)) && ! \__sbx_parses "{ case 0 in 1) ${__sbx_code%\\}("$'\n;;\nesac\n}'
}

__sbx_completeness() {
  \builtin local __sbx_is=invalid
  [[ $__sbx_code == *extglob* ]] && \builtin shopt -s extglob # as for the cell
  if \__sbx_parses "{ case 0 in 1) $__sbx_code"$'\n;;\nesac\n}'; then
    __sbx_is=complete
    \__sbx_goes_on && __sbx_is=incomplete
  elif \__sbx_is_cut; then
    __sbx_is=incomplete
  fi
  \builtin printf ',"status":"%s"' "$__sbx_is"
}

# Completion takes the line before the cursor apart, up to the word that ends it:
#   __sbx_rest    what has not been looked at
#   __sbx_word    the word as it is typed, __sbx_plain what it means, __sbx_known whether that is known without running it
#   __sbx_within  the quotation mark that is open: ', ", $ for $', or none
#   __sbx_first   the word is a command's name
#   __sbx_target  the word is a redirection's file
#   __sbx_mode    what the words are: commands, words (that no command begins) or numbers (arithmetic); at the end also
#                 variables, where the word is the name of one
#   __sbx_closer  what ends the substitution or the parentheses around; __sbx_outer has the six above of all that is around

readonly __sbx_assignment='^[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?='

# Moves $1 characters of the rest to the word, where they mean $2.
__sbx_take() {
  __sbx_word+=${__sbx_rest:0:$1}
  __sbx_plain+=$2
  __sbx_rest=${__sbx_rest:$1}
}

# Moves what is in front of the first character of the set $1.
__sbx_take_until() {
  \builtin local "__sbx_run=${__sbx_rest%%[$1]*}"
  \__sbx_take "${#__sbx_run}" "$__sbx_run"
}

__sbx_end_word() {
  if [[ $__sbx_word && $__sbx_target ]]; then
    __sbx_target=
  elif [[ $__sbx_word && ! $__sbx_word =~ $__sbx_assignment ]]; then
    case $__sbx_word in
      if | then | elif | else | do | while | until | time | coproc | ! | {) ;; # a command follows
      *) __sbx_first= ;;
    esac
  fi
  __sbx_word= __sbx_plain= __sbx_known=1
}

# Ends the command, at $1 characters.
__sbx_end_command() {
  \__sbx_end_word
  __sbx_rest=${__sbx_rest:$1}
  __sbx_first=1 __sbx_target=
}

# Goes into what ends with $1, has words of the mode $2 and begins with $3 characters.
__sbx_go_in() {
  __sbx_outer+=("$__sbx_word" "$__sbx_within" "$__sbx_first" "$__sbx_target" "$__sbx_mode" "$__sbx_closer")
  __sbx_rest=${__sbx_rest:$3}
  __sbx_closer=$1 __sbx_mode=$2 __sbx_within= __sbx_first=1 __sbx_target=
  __sbx_word= __sbx_plain= __sbx_known=1
}

# Goes back to the word around, whose meaning is not known now.
__sbx_go_out() {
  \builtin local "__sbx_at=$((${#__sbx_outer[@]} - 6))"
  __sbx_word=${__sbx_outer[__sbx_at]}. __sbx_within=${__sbx_outer[__sbx_at + 1]} __sbx_first=${__sbx_outer[__sbx_at + 2]}
  __sbx_target=${__sbx_outer[__sbx_at + 3]} __sbx_mode=${__sbx_outer[__sbx_at + 4]} __sbx_closer=${__sbx_outer[__sbx_at + 5]}
  __sbx_outer=("${__sbx_outer[@]:0:__sbx_at}")
  __sbx_rest=${__sbx_rest:1}
  __sbx_known=
}

# Takes the $1 characters that stand for the value of the variable $2. A name reference could stand for one whose index is
# a command.
__sbx_take_value() {
  if [[ -R $2 ]]; then
    __sbx_known=
    \__sbx_take "$1" ''
  else
    \__sbx_take "$1" "${!2-}"
  fi
}

# Takes what begins with $ or `.
__sbx_take_expansion() {
  \builtin local '__sbx_at_end=^\$(\{[!#]?)?([A-Za-z_][A-Za-z0-9_]*)?$'
  \builtin local '__sbx_whole=^\$([A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})'
  if [[ $__sbx_rest =~ $__sbx_at_end ]]; then
    __sbx_word=${BASH_REMATCH[2]} __sbx_mode=variables __sbx_rest=
  elif [[ $__sbx_rest =~ $__sbx_whole ]]; then
    \__sbx_take_value "${#BASH_REMATCH}" "${BASH_REMATCH[1]//[\{\}]/}"
  else
    case $__sbx_rest in
      \$\(\(*) \__sbx_go_in \) numbers 2 ;;
      \$\(*) \__sbx_go_in \) commands 2 ;;
      \$\{*) \__sbx_go_in \} words 2 ;;
      \`*) if [[ $__sbx_closer == \` ]]; then \__sbx_go_out; else \__sbx_go_in \` commands 1; fi ;;
      \$[-@*#?\$!0-9]*) __sbx_known= && \__sbx_take 2 '' ;;
      *) \__sbx_take 1 \$ ;;
    esac
  fi
}

__sbx_take_parenthesis() {
  if [[ $__sbx_mode == numbers || $__sbx_rest == \(\(* && $__sbx_first && ! $__sbx_word ]]; then
    \__sbx_go_in \) numbers 1
  elif [[ $__sbx_word =~ $__sbx_assignment ]]; then
    \__sbx_go_in \) words 1
  elif [[ $__sbx_rest == \(\)* ]]; then # a function's
    \__sbx_end_command 2
  else
    \__sbx_go_in \) commands 1
  fi
}

__sbx_take_redirection() {
  if [[ $__sbx_rest == [\<\>]\(* ]]; then
    \__sbx_go_in \) commands 2
    return
  fi
  [[ $__sbx_word == *[^0-9]* ]] && \__sbx_end_word # else it is the number of a descriptor
  __sbx_word= __sbx_plain= __sbx_known=1 __sbx_target=1
  __sbx_rest=${__sbx_rest:1}
  [[ $__sbx_rest == [\>\&\|]* ]] && __sbx_rest=${__sbx_rest:1}
}

__sbx_take_comment() {
  [[ $__sbx_rest == *$'\n'* ]] || __sbx_known= # the cursor is in it
  \__sbx_take_until $'\n'
}

# Takes something outside quotation marks.
__sbx_take_bare() {
  if [[ $__sbx_closer && $__sbx_rest == "$__sbx_closer"* ]]; then
    \__sbx_go_out
    return
  fi
  case $__sbx_rest in
    [$' \t']*) \__sbx_end_word && __sbx_rest=${__sbx_rest:1} ;;
    [$'\n;|)']*) \__sbx_end_command 1 ;;
    \&\>*) \__sbx_end_word && __sbx_rest=${__sbx_rest:1} ;;
    \&*) \__sbx_end_command 1 ;;
    \\$'\n'*) if [[ $__sbx_word ]]; then \__sbx_take 2 ''; else __sbx_rest=${__sbx_rest:2}; fi ;;
    \\?*) \__sbx_take 2 "${__sbx_rest:1:1}" ;;
    \\) __sbx_known= && \__sbx_take 1 '' ;;
    \$\'*) __sbx_within=\$ __sbx_known= && \__sbx_take 2 '' ;;
    \$\"*) \__sbx_take 1 '' ;;
    [\'\"]*) __sbx_within=${__sbx_rest:0:1} && \__sbx_take 1 '' ;;
    [\$\`]*) \__sbx_take_expansion ;;
    \(*) \__sbx_take_parenthesis ;;
    [\<\>]*) \__sbx_take_redirection ;;
    \#*) if [[ $__sbx_word || $__sbx_closer == \} ]]; then \__sbx_take 1 \#; else \__sbx_take_comment; fi ;;
    \}*) \__sbx_take 1 \} ;;
    *) \__sbx_take_until $' \t\n;|)&\\\\\'"$`(<>#}' ;;
  esac
}

# Takes something inside quotation marks.
__sbx_take_quoted() {
  case $__sbx_within$__sbx_rest in
    \'\'* | \"\"* | \$\'*) __sbx_within= && \__sbx_take 1 '' ;;
    \'*) \__sbx_take_until \' ;;
    \$\\*) \__sbx_take 2 '' ;;
    \$*) \__sbx_take_until \'\\\\ ;;
    \"\\[\\\"\$\`]*) \__sbx_take 2 "${__sbx_rest:1:1}" ;;
    \"\\$'\n'*) \__sbx_take 2 '' ;;
    \"\\*) \__sbx_take 1 \\ ;;
    \"[\$\`]*) \__sbx_take_expansion ;;
    *) \__sbx_take_until \"\\\\\$\` ;;
  esac
}

# Keeps the first 200 of all matches that are added, in their order and each once.
__sbx_add() {
  \builtin local __sbx_low=0 "__sbx_high=${#__sbx_matches[@]}" __sbx_middle
  while ((__sbx_low < __sbx_high)); do
    __sbx_middle=$(((__sbx_low + __sbx_high) / 2))
    if [[ ${__sbx_matches[__sbx_middle]} < $1 ]]; then __sbx_low=$((__sbx_middle + 1)); else __sbx_high=$__sbx_middle; fi
  done
  [[ ${__sbx_matches[__sbx_low]-} != "$1" ]] && ((__sbx_low < 200)) || return 0
  __sbx_matches=("${__sbx_matches[@]:0:__sbx_low}" "$1" "${__sbx_matches[@]:__sbx_low:199 - __sbx_low}")
}

# Adds the names of a kind, an option of compgen, that begin with $2. Those of the driver are nobody's.
__sbx_add_names() {
  \builtin local __sbx_each IFS=$'\n'
  \builtin set -f
  __sbx_tail=$2
  for __sbx_each in $(\builtin compgen "$1" -- "$2"); do
    [[ $__sbx_each == __sbx_* || $__sbx_each == *[$' \t\\\'"$`;&|<>()']* || ${#__sbx_each} -gt 200 ]] && continue
    [[ $__sbx_each == "$2"* ]] && \__sbx_add "$__sbx_each"
  done
}

# Sets __sbx_typed to what is typed for the text $1 inside the quotation marks that are open.
__sbx_type() {
  \builtin local __sbx_at __sbx_char __sbx_special=$' \t!"$&\'()*;<>?[\\]`{|}'
  [[ $__sbx_within ]] && __sbx_special='"\$`'
  [[ $__sbx_within == \' ]] && __sbx_special=
  __sbx_typed=
  for ((__sbx_at = 0; __sbx_at < ${#1}; ++__sbx_at)); do
    __sbx_char=${1:__sbx_at:1}
    case $__sbx_within$__sbx_char in
      \'\') __sbx_char="'\\''" ;;
      [~#]) [[ $__sbx_word$__sbx_typed ]] || __sbx_char=\\$__sbx_char ;; # special only where a word begins
    esac
    [[ $__sbx_special == *"$__sbx_char"* ]] && __sbx_typed+=\\
    __sbx_typed+=$__sbx_char
  done
}

# Adds the files that the word can become; for a command's name those that can be run, and directories. What is replaced
# begins after the last slash, or on the last line.
__sbx_add_files() {
  \builtin local __sbx_file __sbx_mark "__sbx_path=$__sbx_plain"
  [[ $__sbx_word == \~/* ]] && __sbx_path=~/${__sbx_plain:2}
  __sbx_tail=${__sbx_word##*[/$'\n']}
  for __sbx_file in "$__sbx_path"*; do
    __sbx_mark=$__sbx_within
    if [[ -d $__sbx_file ]]; then __sbx_mark=/; elif [[ $__sbx_first && ! -x $__sbx_file ]]; then continue; fi
    [[ ${__sbx_file##*/} == . || ${__sbx_file##*/} == .. || $__sbx_file == *[[:cntrl:]]* ]] && continue
    \__sbx_type "${__sbx_file#"$__sbx_path"}"
    \__sbx_add "$__sbx_tail$__sbx_typed$__sbx_mark"
    ((${#__sbx_matches[@]} < 200)) || break # the next ones come behind them
  done
}

# Leaves the value of an assignment or of an option in the word, and of that what follows the last colon.
__sbx_cut_name() {
  [[ $__sbx_word =~ $__sbx_assignment || $__sbx_word =~ ^-[-A-Za-z0-9_]*= ]] || return
  __sbx_first=
  __sbx_word=${__sbx_word:${#BASH_REMATCH}} __sbx_plain=${__sbx_plain:${#BASH_REMATCH}}
  [[ $__sbx_word == "$__sbx_plain" ]] && __sbx_word=${__sbx_word##*:} __sbx_plain=${__sbx_plain##*:}
}

# Adds what the line's last word can become.
__sbx_add_matches() {
  if [[ $__sbx_mode == variables ]]; then
    \__sbx_add_names -v "$__sbx_word"
  elif [[ $__sbx_mode == numbers ]]; then
    \__sbx_add_names -v "${__sbx_word##*[^A-Za-z0-9_]}"
  elif [[ $__sbx_known ]]; then
    [[ $__sbx_mode == commands && ! $__sbx_target ]] || __sbx_first=
    [[ $__sbx_target ]] || \__sbx_cut_name
    if [[ $__sbx_first && $__sbx_word == "$__sbx_plain" && $__sbx_word != *[/~]* ]]; then
      [[ ! $__sbx_word ]] || \__sbx_add_names -c "$__sbx_word" # else they are all there are
    else
      \__sbx_add_files
    fi
  fi
}

# Sets __sbx_rest to the last line before the cursor, with those that a backslash makes parts of it.
__sbx_find_line() {
  \builtin local "__sbx_before=$__sbx_code"
  __sbx_rest=
  while :; do
    __sbx_rest=${__sbx_before##*$'\n'}$__sbx_rest
    __sbx_before=${__sbx_code%"$__sbx_rest"}
    [[ $__sbx_before == *\\$'\n' ]] || return
    __sbx_before=${__sbx_before%$'\n'}
    __sbx_rest=$'\n'$__sbx_rest
  done
}

__sbx_completion() {
  \builtin local __sbx_list= __sbx_each
  ((${#__sbx_code} <= 2000)) || __sbx_code=${__sbx_code: -2000} # of a longer line nobody completes the end
  __sbx_matches=() __sbx_outer=() __sbx_closer= __sbx_mode=commands __sbx_within= __sbx_first=1 __sbx_target=
  __sbx_word= __sbx_plain= __sbx_known=1
  \__sbx_find_line
  while [[ $__sbx_rest ]]; do
    if [[ $__sbx_within ]]; then \__sbx_take_quoted; else \__sbx_take_bare; fi
  done
  \__sbx_add_matches
  ((${#__sbx_matches[@]})) || return
  for __sbx_each in "${__sbx_matches[@]}"; do
    \__sbx_quote "$__sbx_each"
    __sbx_list+=,$__sbx_quoted
  done
  \__sbx_quote "$__sbx_tail"
  \builtin printf ',"replaces":%s,"matches":[%s]' "$__sbx_quoted" "${__sbx_list:1}"
}

# Says the fields of the answer, after a mark: a trap of DEBUG may have said something before.
__sbx_look() {
  \__sbx_settle
  \builtin printf '\1'
  case $__sbx_count in
    completeness) \__sbx_completeness ;;
    completion) \__sbx_completion ;;
  esac
}

__sbx_inspect() {
  \builtin local "__sbx_nonce=$__sbx_open" __sbx_fields
  __sbx_open=
  __sbx_fields=$(\__sbx_look) # interrupted, it has said nothing after the mark
  __sbx_fields=${__sbx_fields#*$'\1'}
  [[ $__sbx_fields == ,* ]] || __sbx_fields=
  \__sbx_send "{\"event\":\"inspected\",\"nonce\":\"$__sbx_nonce\"$__sbx_fields}"
}

# Cells, one after the other.

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
    [[ $__sbx_undo ]] && \__sbx_take_back
    [[ $__sbx_open ]] && \__sbx_answer ''
    __sbx_thrown= __sbx_why= __sbx_error=
    \__sbx_receive || return
    if [[ $__sbx_count == [a-z]* ]]; then
      \__sbx_inspect
      continue
    fi
    if \__sbx_parse; then
      [[ $__sbx_given ]] || break
      \__sbx_give && break
    else
      \__sbx_misspelt
    fi
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
  if { :; } 0<&125 && [[ -o errtrace && $(\builtin trap -p ERR) == *__sbx_failed* ]]; then
    __sbx_why=failed __sbx_revived=1
    \__sbx_throw
  fi
  ((__sbx_status <= 128)) || return # maybe a signal, of which others know more
  \__sbx_answer ',"ended":true'
}

readonly -f __sbx_send __sbx_quote __sbx_answer __sbx_receive __sbx_parse __sbx_misspelt __sbx_next __sbx_end_child __sbx_enter __sbx_last __sbx_throw __sbx_failed __sbx_leave
readonly -f __sbx_refuse __sbx_set __sbx_change_to __sbx_give __sbx_take_back
readonly -f __sbx_settle __sbx_parses __sbx_is_cut __sbx_goes_on __sbx_completeness __sbx_take __sbx_take_until
readonly -f __sbx_end_word __sbx_end_command __sbx_go_in __sbx_go_out __sbx_take_value __sbx_take_expansion
readonly -f __sbx_take_parenthesis __sbx_take_redirection __sbx_take_comment __sbx_take_bare __sbx_take_quoted __sbx_add
readonly -f __sbx_add_names __sbx_type __sbx_add_files __sbx_cut_name __sbx_add_matches __sbx_find_line __sbx_completion
readonly -f __sbx_look __sbx_inspect
set -o errtrace
# "e" in $- would be the "E" of errtrace as well under nocasematch.
trap 'case $SHELLOPTS in *errexit*) \__sbx_failed "$?" "$BASH_COMMAND" "$LINENO" || :; esac' ERR
readonly __sbx_at_exit='\__sbx_leave "$?" || :'
trap "$__sbx_at_exit" EXIT
trap : TERM # an interactive shell ignores it, and forgets that only with a trap
trap - TERM

# A cell can leave the loop by `break`. One line: those of the cell are counted from it on.
readonly PROMPT_COMMAND='\__sbx_enter || :; while \__sbx_next; do if \__sbx_last; then \builtin eval "$__sbx_text"; else \builtin eval "$__sbx_text"; fi; done; [[ $__sbx_open ]] && { __sbx_why=break __sbx_status=0; \__sbx_throw; }'

__sbx_send "{\"event\":\"ready\",\"language\":\"bash\",\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\",\"shell\":\"plain\"}"
