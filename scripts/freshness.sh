# shellcheck shell=bash
# is_fresh HOME: true if the last set-up in HOME is newer than all its inputs. Takes milliseconds and uses no network.
# Folders are inputs too: their time changes when a file is added or removed.
is_fresh() {
  local ready=$1/.plimsoll/ready
  [ -e "$ready" ] && [ -x "$1/build/release/bin/plimsoll" ] && [ -x "$1/.plimsoll/venv/bin/python" ] || return 1
  [ -z "$(find "$1/src" "$1/cmake" "$1/CMakeLists.txt" "$1/CMakePresets.json" "$1/scripts" \
    -name '__pycache__' -prune -o -newer "$ready" -print -quit)" ]
}
