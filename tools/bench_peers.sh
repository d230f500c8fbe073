#!/usr/bin/env bash
# Optimal trees side by side with other solvers, then our server side by side with other annotation
# servers: tools/bench_peers.sh PYTHON [OPTIONS]
# PYTHON has crowdtree; each peer gets its own environment under out/peers with pinned packages.
# OPTIONS go to benchmarks/optimal_peers.py. A peer that does not install is reported as such.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
shift || true
home=out/peers
mkdir -p "$home"

set_up() {
  local name=$1 folder=$home/$1 pins=tools/peers/$1.txt
  cmp -s "$pins" "$folder/pins.txt" && return
  echo "bench-peers: setting up $name"
  rm -rf "$folder" "$folder.failed"
  if "$python" -m venv "$folder" >"$folder.log" 2>&1 &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$pins" >>"$folder.log" 2>&1; then
    cp "$pins" "$folder/pins.txt"
  else
    grep -i error "$folder.log" | tail -1 | cut -c1-150 >"$folder.failed"
    echo "bench-peers: $name did not install: $(cat "$folder.failed")"
    rm -rf "$folder"
  fi
}

for pins in tools/peers/*.txt; do
  name=${pins##*/}
  set_up "${name%.txt}"
done
"$python" -m benchmarks.optimal_peers "$@"
status=$?
"$python" -m benchmarks.serve_peers --peers "$home" || status=$?
exit $status
