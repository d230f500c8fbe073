#!/usr/bin/env bash
# Mutation testing (mutmut) of the rooms whose numbers everything rests on: every change to a line
# that no test notices is a survivor. Works in a copy, so that the repository stays as it is.
#
#   tools/mutation.sh [BIN] [OUT]
#
# BIN: folder of the tools (.venv/bin by default). OUT: where the copy and the list of survivors go
# (out/mutation by default; kept, so that a second run goes on where the first stopped).
# ROOMS="fusion scores" limits what is mutated; JOBS sets the processes.
# Survivors are killed with a better test or explained in docs/mutation.md, where the list of the
# explained ones is read from: exit 1 if there is any other.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "${1:-.venv/bin}")
out=${2:-out/mutation}
rooms=${ROOMS:-fusion scores evaluate staffing}
jobs=${JOBS:-2}

mkdir -p "$out"
for part in src tests pyproject.toml README.md LICENSE; do
  cp -ru "$part" "$out/"
done
cp tools/mutmut_shim.py "$out/src/"
{
  echo "[mutmut]"
  echo "source_paths=src"
  echo "only_mutate="
  for room in $rooms; do echo "  src/crowdtree/$room.py"; done
  echo "also_copy="
  for part in tests pyproject.toml README.md LICENSE; do echo "  $part"; done
  echo "pytest_add_cli_args="
  for word in -p mutmut_shim -p no:cacheprovider -p no:xdist; do echo "  $word"; done
  echo "pytest_add_cli_args_test_selection="
  for room in $rooms; do echo "  tests/test_$room.py"; done
  echo "  tests/test_plan.py"
  echo "use_git_change_detection=false"
} > "$out/setup.cfg"

cd "$out"
export CROWDTREE_EXAMPLES="${CROWDTREE_EXAMPLES:-0.25}"
PYTHONPATH=src nice -n 10 "$bin/mutmut" run --max-children "$jobs"
"$bin/mutmut" results > results.txt
"$bin/python" - "$OLDPWD/docs/mutation.md" results.txt <<'PY'
import pathlib, re, sys

explained, results = (pathlib.Path(name) for name in sys.argv[1:])
known = set(re.findall(r"`(crowdtree\.[\w.ǁ]+__mutmut_\d+)`", explained.read_text()))
found = re.findall(r"(crowdtree\.[\w.ǁ]+__mutmut_\d+): (\S+)", results.read_text())
alive = {name for name, status in found if status in {"survived", "no", "suspicious"}}
for name in sorted(alive - known):
    print("survivor without explanation:", name)
print(f"{len(alive)} survivors, {len(alive & known)} of them explained in docs/mutation.md")
sys.exit(bool(alive - known))
PY
