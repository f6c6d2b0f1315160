#!/usr/bin/env bash
# Checks the form of the sources: clang-format, ruff, mypy, codespell, shellcheck, and the direction of includes.
#   lint.sh               every check
#   lint.sh --tidy        clang-tidy on the sources that do not see torch; it takes minutes
# The tools stand in .plimsoll/lint, in the versions of lint_requirements.txt.
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$home"
state=$home/.plimsoll
tools=$state/lint
# shellcheck source=scripts/progress.sh
. "$home/scripts/progress.sh"

# install TOOLS REQUIREMENT…: a virtual environment, made again if the requirements have changed.
install() {
  local folder=$1 key
  shift
  key="$(python3 --version) $*"
  [ "$(cat "$folder/complete" 2>/dev/null)" != "$key" ] || return 0
  mkdir -p "$state"
  log=$state/lint.log
  : >"$log"
  run "installing the lint tools" eval "python3 -m venv --clear '$folder' && '$folder/bin/python' -m pip install \
    --disable-pip-version-check --no-input $*"
  printf '%s\n' "$key" >"$folder/complete"
}

failed=false
# lint NAME COMMAND…: runs one check. The others run even if it fails.
lint() {
  local name=$1
  shift
  "$@" || { say "lint: $name failed"; failed=true; }
}

sources() { git ls-files -z '*.h' '*.cpp'; }
shell_scripts() { git ls-files -z '*.sh' check plimsoll .ci/run; }

clang_format() { sources | xargs -0 -n 50 -P "$(nproc)" "$tools/bin/clang-format" --dry-run --Werror; }
shellcheck() { shell_scripts | xargs -0 "$tools/bin/shellcheck" --external-sources; }
codespell() { git ls-files -z | xargs -0 "$tools/bin/codespell"; }

# clang-tidy reads each file as it is compiled by itself, so neither unity builds nor precompiled headers.
clang_tidy() {
  local folder=$home/build/tidy
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DPLIMSOLL_TORCH_LIB= \
    -DPLIMSOLL_FACES=all -DPLIMSOLL_UNITY=0 >"$state/clang-tidy.log" || return
  python3 -c 'import json, sys; print(*(each["file"] for each in json.load(open(sys.argv[1]))), sep="\n")' \
    "$folder/compile_commands.json" | grep "^$home/src/plimsoll/" |
    xargs -n 4 -P "$(nproc)" "$state/clang-tidy/bin/clang-tidy" -p "$folder" --quiet --warnings-as-errors='*'
}

if [ "${1:-}" = --tidy ]; then
  install "$state/clang-tidy" clang-tidy==19.1.0
  lint clang-tidy clang_tidy
else
  mapfile -t requirements < <(grep -v '^#' scripts/lint_requirements.txt)
  install "$tools" "${requirements[@]}"
  lint clang-format clang_format
  lint "ruff check" "$tools/bin/ruff" check --quiet --output-format concise .
  lint "ruff format" "$tools/bin/ruff" format --quiet --check .
  lint codespell codespell
  lint shellcheck shellcheck
  lint includes python3 -B scripts/check_includes.py
  lint mypy "$tools/bin/mypy" --no-error-summary
fi
if $failed; then
  say "lint failed; pre-commit run --all-files repairs what a tool can repair"
  exit 1
fi
