# Driver of a bash context: runs cells in one shell that keeps its functions, variables and working directory.
#
# Started as  bash --noprofile --norc -c 'eval "$1";eval "$__sbx_cells"' bash TEXT  with descriptor 3 for requests and 4
# for replies. A message is its length in decimal digits, a line feed, and that many bytes of JSON. The loop is on the
# first line of its program, so that bash counts the lines of a cell from 1.
#
# Cells run at the top level, where `declare` makes globals, with both descriptors closed: commands don't inherit them.
# The shell itself holds copies that are close-on-exec. SIGINT ends the cell, not the shell; send it to the process
# group, because bash waits for its foreground command. A cell's own trap for SIGINT lasts until its end.

exec {__sbx_in}<&3 {__sbx_out}>&4 3<&- 4>&-
unset BASH_EXECUTION_STRING
__sbx_pipe=$(readlink "/proc/$$/fd/$__sbx_out" 2>/dev/null)
__sbx_open= __sbx_interrupted= __sbx_trace= __sbx_status=0 __sbx_nonce= __sbx_count=0 __sbx_code= __sbx_options= __sbx_eof=
shopt -s expand_aliases

__sbx_send() { # JSON [DESCRIPTOR]
  local LC_ALL=C
  builtin printf '%d\n%s' "${#1}" "$1" >&"${2:-$__sbx_out}"
}

__sbx_return() { builtin return "$1"; }

# Bytes of a code point.
__sbx_utf8() {
  local -i c=$1
  local text
  if ((c < 0x80)); then
    builtin printf -v text '\\x%02x' "$c"
  elif ((c < 0x800)); then
    builtin printf -v text '\\x%02x\\x%02x' "$((0xC0 | c >> 6))" "$((0x80 | c & 63))"
  elif ((c < 0x10000)); then
    builtin printf -v text '\\x%02x\\x%02x\\x%02x' "$((0xE0 | c >> 12))" "$((0x80 | c >> 6 & 63))" "$((0x80 | c & 63))"
  else
    builtin printf -v text '\\x%02x\\x%02x\\x%02x\\x%02x' "$((0xF0 | c >> 18))" "$((0x80 | c >> 12 & 63))" "$((0x80 | c >> 6 & 63))" "$((0x80 | c & 63))"
  fi
  builtin printf -v __sbx_character "$text"
}

# The text of a JSON string whose \\ and \" are the characters 1 and 2.
__sbx_unescape() {
  local text=$1 rest hex low c
  if [[ $text == *\\* ]]; then
    text=${text//'\n'/$'\n'} text=${text//'\t'/$'\t'} text=${text//'\r'/$'\r'}
    text=${text//'\b'/$'\b'} text=${text//'\f'/$'\f'} text=${text//'\/'//}
    while [[ $text == *'\u'* ]]; do
      rest=${text#*'\u'} hex=${rest:0:4} low=
      c=$((16#$hex))
      if ((c >= 0xD800 && c < 0xDC00)) && [[ ${rest:4:2} == '\u' ]]; then
        low=${rest:6:4}
        c=$((0x10000 + ((c - 0xD800) << 10) + (16#$low - 0xDC00)))
        low="\\u$low"
      fi
      __sbx_character=
      ((c == 0)) || __sbx_utf8 "$c"
      text=${text//"\\u$hex$low"/"$__sbx_character"}
    done
  fi
  text=${text//$'\x02'/'"'}
  __sbx_text=${text//$'\x01'/"\\"}
}

# Reads messages until one is a cell. Fails at the end of the requests.
__sbx_receive() {
  local LC_ALL=C IFS= size body key value
  local -a parts
  local -i at
  while builtin read -r -u "$__sbx_in" size && builtin read -r -N "$size" -u "$__sbx_in" body; do
    body=${body//'\\'/$'\x01'}
    body=${body//'\"'/$'\x02'}
    # Now quotation marks only delimit. Odd parts are strings, the others what stands between them.
    set -f
    IFS='"'
    parts=($body)
    IFS=
    [[ $__sbx_options == *f* ]] || set +f
    local op= nonce= count=0 code=
    for ((at = 1; at < ${#parts[@]}; at += 2)); do
      key=${parts[at]} value=${parts[at + 1]:-}
      [[ $value == *:* ]] || continue
      value=${value#*:}
      if [[ -z ${value//[$' \t\r\n']/} ]]; then
        at+=2
        __sbx_unescape "${parts[at]:-}"
        value=$__sbx_text
      else
        value=${value//[^0-9]/}
      fi
      case $key in
        op) op=$value ;;
        nonce) nonce=$value ;;
        count) count=$value ;;
        code) code=$value ;;
      esac
    done
    case $op in
      ping) __sbx_send '{"event":"pong"}' ;;
      cell)
        __sbx_nonce=${nonce//[^0-9A-Za-z]/} __sbx_count=$count __sbx_code=$code __sbx_interrupted= __sbx_open=1
        return 0
        ;;
    esac
  done
  __sbx_eof=1
  return 1
}

__sbx_done() { # STATUS MORE [DESCRIPTOR]
  local ok=false
  [[ $1 != 0 ]] || ok=true
  __sbx_send "{\"event\":\"done\",\"nonce\":\"$__sbx_nonce\",\"count\":$__sbx_count,\"ok\":$ok,\"exit\":$1$2}" "${3:-}"
}

# The end of a cell: remembers what the driver must not run under, and answers.
__sbx_close() {
  # Only commands that name the driver run until this trap is gone.
  [[ ! $__sbx_interrupted ]] || builtin trap ${__sbx_none-} - DEBUG
  __sbx_status=$1 __sbx_options=$- __sbx_trace=
  case $- in *x*) set +x && __sbx_trace='set -x; ' ;; esac
  builtin trap '' INT
  if [[ $__sbx_interrupted ]]; then
    shopt -u extdebug
    set +TE
    __sbx_status=130
    __sbx_send "{\"event\":\"error\",\"nonce\":\"$__sbx_nonce\",\"name\":\"Interrupt\",\"value\":\"SIGINT ended the cell\",\"traceback\":\"\",\"line\":null}"
  fi
  __sbx_open=
  __sbx_done "$__sbx_status" ''
  return 0
}

# SIGINT: leaves every function and loop, and skips what follows, until the driver's next line.
__sbx_interrupt() {
  __sbx_interrupted=1
  shopt -s extdebug
  set -T
  builtin trap 'case $BASH_COMMAND in *__sbx_*) ;; *) if ((${#FUNCNAME[@]})); then __sbx_return 2; else break 999 2>/dev/null; __sbx_return 1; fi ;; esac' DEBUG
}

# The shell ends inside a cell. The cell's redirections are in force: the channel is where bash keeps its copy.
__sbx_exit() {
  [[ $__sbx_open && $BASHPID == "$$" ]] || return 0
  { set +x; } 2>/dev/null
  local copy
  for copy in "/proc/$$/fd/"*; do
    [[ ${copy##*/} -gt 9 && $(readlink "$copy" 2>/dev/null) == "$__sbx_pipe" ]] || continue
    __sbx_done "$1" ',"ended":true' "${copy##*/}"
    break
  done
}

builtin trap '' INT
builtin trap '__sbx_exit $?' EXIT
__sbx_send "{\"event\":\"ready\",\"language\":\"bash\",\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\",\"shell\":\"plain\"}"

# An interrupt, or a stray `break`, leaves the loop; then it begins again one level deeper. A stray `continue` comes to
# its condition. One line: see above.
__sbx_cells='while { [[ ! $__sbx_open ]] || __sbx_close 0; __sbx_receive; } 2>/dev/null; do'
__sbx_cells+=' builtin trap "__sbx_interrupt; break 999 2>/dev/null; return 130 2>/dev/null" INT;'
__sbx_cells+=' [[ $- == *e* ]] || __sbx_return "$__sbx_status";'
__sbx_cells+=' eval "$__sbx_trace$__sbx_code" {__sbx_in}<&- {__sbx_out}>&-;'
__sbx_cells+=' { __sbx_close $?; } 2>/dev/null; done;'
__sbx_cells+=' if [[ $__sbx_open ]]; then { __sbx_close $?; } 2>/dev/null; fi;'
__sbx_cells+=' if [[ ! $__sbx_eof ]]; then eval "$__sbx_cells"; fi'
set --
