#!/usr/bin/env bash
# Make a virtual environment with pinned packages:  tools/setup.sh FOLDER [EXTRA]
# Make one that only builds the wheel:               tools/setup.sh FOLDER --build
# Or see that there is a browser for the tests:      tools/setup.sh --browser
# Installs from the system's packages what is missing, or says exactly what to run.
set -euo pipefail
venv=$1
python=${PYTHON:-python3}

install_system() {
  local packages=("$@")
  local runner=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then runner=(sudo -n); else
      echo "setup: missing system packages; run: sudo apt-get install -y ${packages[*]}" >&2
      exit 1
    fi
  fi
  if ! command -v apt-get >/dev/null; then
    echo "setup: please install with your package manager: ${packages[*]}" >&2
    exit 1
  fi
  "${runner[@]}" apt-get update -qq
  "${runner[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}"
}

if [ "$venv" = --browser ]; then
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || install_system chromium
  exit 0
fi
command -v "$python" >/dev/null || install_system python3 python3-venv
"$python" - <<'PY' || { echo "setup: crowdtree needs Python 3.11 or newer (set PYTHON=...)" >&2; exit 1; }
import sys
raise SystemExit(sys.version_info < (3, 11))
PY
if [ ! -x "$venv/bin/pip" ]; then
  echo "setup: making $venv"
  "$python" -c 'import ensurepip' 2>/dev/null || install_system python3-venv
  rm -rf "$venv"
  "$python" -m venv "$venv"
fi
if [ "${2-}" = --build ]; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check -c constraints.txt build
  exit 0
fi
echo "setup: installing pinned packages"
"$venv/bin/pip" install --quiet --disable-pip-version-check -c constraints.txt -e ".[${2-dev}]"
echo "setup: the command is $venv/bin/crowdtree; '. $venv/bin/activate' makes it crowdtree"
