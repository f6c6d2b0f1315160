# shellcheck shell=bash disable=SC2154
# Short lines for people, long output for the log. The caller sets `log`.

say() { printf 'plimsoll: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

# try TITLE COMMAND…: runs the command with its output in the log. On a terminal the line counts the seconds, and the
# steps that ninja reports.
try() {
  local title=$1 start=$SECONDS status=0 child
  shift
  printf '\n=== %s\n' "$title" >>"$log"
  set -m # A new process group: an interruption also ends the processes that the command started.
  "$@" >>"$log" 2>&1 </dev/null &
  set +m
  child=$!
  trap 'kill -- "-$child" 2>/dev/null; printf "\n" >&2; say "interrupted; the next run continues from here"; exit 130' INT TERM
  if [ -t 2 ]; then
    while kill -0 "$child" 2>/dev/null; do
      printf '\r\033[Kplimsoll: %s … %s%d s' "$title" "$(_ninja_step)" $((SECONDS - start)) >&2
      sleep 0.5
    done
    printf '\r\033[K' >&2
  else
    say "$title …"
  fi
  wait "$child" || status=$?
  trap - INT TERM
  if [ "$status" -ne 0 ]; then
    say "$title: failed after $((SECONDS - start)) s"
  elif [ -t 2 ] || [ $((SECONDS - start)) -ge 5 ]; then
    say "$title: done in $((SECONDS - start)) s"
  fi
  return "$status"
}

_ninja_step() { tail -n 1 "$log" 2>/dev/null | sed -n 's/^\(\[[0-9]*\/[0-9]*\]\).*/\1 /p'; }

# run TITLE COMMAND…: as try; ends the script if the command fails.
run() {
  try "$@" || {
    tail -n 25 "$log" | sed 's/^/  | /' >&2
    fail "set-up failed at: $1. The whole output is in $log"
  }
}
