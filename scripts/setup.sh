#!/usr/bin/env bash
# Sets everything up: Debian packages that are missing, a virtual environment with torch, CUDA's headers, the build.
#   setup.sh            for the plimsoll command
#   setup.sh --tests    also for the tests
#   setup.sh --headers  only packages and headers, which torch-free libraries need
# .plimsoll/steps notes each finished step, so an interrupted set-up continues. Long output goes to .plimsoll/setup.log.
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
state=$home/.plimsoll
steps=$state/steps
log=$state/setup.log
venv=$state/venv
build=$home/build/release
# shellcheck source=scripts/progress.sh
. "$home/scripts/progress.sh"

torch_version=2.13.0
triton_version=3.7.1
python_packages="typing_extensions filelock sympy networkx jinja2 fsspec numpy setuptools"

with_tests=false only_headers=false
case ${1:-} in
  "") ;;
  --tests) with_tests=true ;;
  --headers) only_headers=true ;;
  *) echo "usage: setup.sh [--tests | --headers]" >&2; exit 2 ;;
esac

mkdir -p "$steps" 2>/dev/null && [ -w "$state" ] \
  || fail "$state cannot be written: it belongs to $(stat -c %U "$state" 2>/dev/null || echo another user). Use a checkout of your own"
exec 9>"$state/lock"
flock -n 9 || { say "another set-up is running: waiting for it"; flock 9; }
: >"$log"
started=$(mktemp "$state/ready.XXXXXX")
trap 'rm -f "$started"' EXIT

# is_done STEP KEY / note_done STEP KEY: a step is done only for the KEY that it was noted with.
is_done() { [ "$(cat "$steps/$1" 2>/dev/null)" = "$2" ]; }
note_done() { printf '%s\n' "$2" >"$steps/$1"; }

# --- Debian packages -------------------------------------------------------------------------------------------------

has_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }
has_command() { command -v "$1" >/dev/null 2>&1; }

missing_packages() {
  has_command g++ || echo g++
  has_command ld || echo binutils
  has_command cmake || echo cmake
  has_command ninja || echo ninja-build
  has_command ccache || echo ccache
  has_command mold || echo mold
  has_header nlohmann/json.hpp || echo nlohmann-json3-dev
  has_header fmt/format.h || echo libfmt-dev
  has_header toml++/toml.h || echo libtomlplusplus-dev
  has_header doctest/doctest.h || echo doctest-dev
  has_header benchmark/benchmark.h || echo libbenchmark-dev
  has_header gloo/algorithm.h || echo libgloo-dev
  if ! has_command python3; then
    echo python3 python3-venv python3-dev
  else
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    # Triton compiles its launchers against Python.h.
    python3 -c 'import os, sysconfig; raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
      || echo python3-dev
  fi
}

install_packages() { # install_packages [sudo] PACKAGE…
  "$@" || { "${apt[@]}" update && "$@"; }
}

# find_apt: sets apt, or fails without the right to install packages.
find_apt() {
  has_command apt-get || return 1
  apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
  [ "$(id -u)" -ne 0 ] || return 0
  has_command sudo && sudo -n true 2>/dev/null || return 1
  apt=(sudo -n "${apt[@]}")
}

set_up_packages() {
  local missing
  mapfile -t missing < <(missing_packages | tr ' ' '\n')
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! has_command apt-get; then
    fail "missing packages, by their Debian names: ${missing[*]}. Install them, then try again."
  fi
  find_apt || fail "packages are missing, and this user cannot install them. Run this, then try again:
  sudo apt-get install -y ${missing[*]}"
  run "installing Debian packages: ${missing[*]}" install_packages "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}

# Optional: Clang halves the build time (cmake/PlimsollClang.cmake). Installed before the first build only.
set_up_clang() {
  if is_done clang 19 || [ -e "$build/CMakeCache.txt" ]; then return 0; fi
  if has_command clang++-19 && compgen -G "$(clang++-19 -print-resource-dir)/lib/*/libclang_rt.tsan*" >/dev/null; then return 0; fi
  if ! find_apt; then
    say "building with the default compiler; Debian's clang-19 would take half the time"
  else
    try "installing Clang" install_packages "${apt[@]}" install -y --no-install-recommends clang-19 libclang-rt-19-dev \
      || say "continuing without Clang, which would take half the time"
  fi
  note_done clang 19
}

# --- the virtual environment -----------------------------------------------------------------------------------------

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }

torch_folder() { echo "$venv"/lib/python3*/site-packages/torch; }
has_cuda_torch() { [ -e "$(torch_folder)/lib/libtorch_cuda.so" ]; }

install_torch() {
  # === selects the CUDA build even if pip prefers a CPU build of the same version.
  pip install "torch===$torch_version" --no-deps || pip install "torch==$torch_version" --no-deps
}

set_up_venv() {
  local version
  version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  python3 -c 'import sys; raise SystemExit(not (3, 10) <= sys.version_info < (3, 15))' \
    || fail "python3 is Python $version; torch $torch_version needs Python 3.10 to 3.14"
  if ! is_done venv "$version" || ! "$venv/bin/python" -c '' 2>/dev/null; then
    rm -f "$steps"/{torch,triton,python_packages,test_packages}
    run "making a virtual environment for Python $version" python3 -m venv --clear "$venv"
    note_done venv "$version"
  fi
}

set_up_python() {
  if ! is_done torch "$torch_version" || [ ! -e "$(torch_folder)/version.py" ]; then
    run "installing torch $torch_version (half a gigabyte)" install_torch
    note_done torch "$torch_version"
  fi
  if ! is_done python_packages "$python_packages"; then
    # shellcheck disable=SC2086
    run "installing torch's Python needs" pip install $python_packages
    note_done python_packages "$python_packages"
  fi
  has_cuda_torch || {
    say "only a CPU build of torch $torch_version was found: parts that need the pretend GPU are not built"
    return 0
  }
  if ! is_done triton "$triton_version"; then
    run "installing triton $triton_version" pip install "triton==$triton_version"
    note_done triton "$triton_version"
  fi
}

set_up_test_packages() {
  if ! is_done test_packages 8; then
    # pytest 9 with pytest-xdist 3.8 separates tests of one group, so that each worker makes what they share.
    run "installing packages for the tests" pip install "pytest<9" pytest-xdist expecttest scikit-build-core \
      jsonschema==4.26.0 cloudpickle tabulate
    try "installing transformers (optional)" pip install transformers || say "continuing without transformers"
    note_done test_packages 8
  fi
}

# The build does not need these packages: they are installed while it runs.
begin_test_packages() {
  packages_log=$state/test_packages.log
  (log=$packages_log && : >"$log" && set_up_test_packages) 2>"$packages_log.messages" &
  packages=$!
  trap 'kill "$packages" 2>/dev/null; rm -f "$started"' EXIT
}

end_test_packages() {
  local status=0
  wait "$packages" || status=$?
  trap 'rm -f "$started"' EXIT
  cat "$packages_log.messages" >&2
  rm -f "$packages_log.messages"
  return "$status"
}

# --- headers and build -----------------------------------------------------------------------------------------------

set_up_headers() {
  [ -e "$state/headers/cu13/include/cuda_runtime_api.h" ] && [ -e "$state/headers/cu13/complete" ] \
    || run "fetching CUDA 13's headers" "$venv/bin/python" "$home/scripts/cuda_headers.py" 13 "$state/headers/cu13"
}

configure() { (cd "$home" && cmake --preset release -DPython3_EXECUTABLE="$venv/bin/python"); }

set_up_build() {
  local target=plimsoll_product key
  if $with_tests; then target=all; fi
  key=$(cat "$home/CMakePresets.json" "$(torch_folder)/version.py" | cksum)
  if [ ! -e "$build/build.ninja" ] || ! is_done configure "$key"; then
    run "configuring" configure
    note_done configure "$key"
  fi
  ninja -C "$build" -n "$target" 2>/dev/null | grep -q 'no work to do' || run "building" ninja -C "$build" "$target"
}

set_up_packages
set_up_clang
set_up_venv
set_up_headers
if $only_headers; then exit 0; fi
set_up_python
if $with_tests; then begin_test_packages; fi
set_up_build
if $with_tests; then end_test_packages; fi
# The file has the time of the start, so that a change during the build counts as new.
mv "$started" "$state/ready"
