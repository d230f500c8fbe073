#!/usr/bin/env bash
# Mutation testing (mutmut) of the modules whose numbers everything rests on: every change to a line
# that no test notices is a survivor. Works in copies, so that the repository stays as it is.
#
#   tools/mutation.sh [BIN] [OUT]
#
# BIN: folder of the tools (.venv/bin by default). OUT: where the copies and the lists of survivors
# go (out/mutation by default; kept, so that a second run goes on where the first stopped).
# MODULES="core/voting core/scores" limits what is mutated; JOBS sets the processes. Each module is tested by its
# own tests, with few Hypothesis examples that are always the same (CROWDTREE_EXAMPLES).
# Survivors are killed with a better test or explained in docs/internals/mutation.md; exit 1 if any is neither.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath "${1:-.venv/bin}")
out=${2:-out/mutation}
explained=$PWD/docs/internals/mutation.md
export CROWDTREE_EXAMPLES="${CROWDTREE_EXAMPLES:-0.03}"
unset CROWDTREE_DATA

declare -A ALSO=([core/voting]=tests/core/test_dependence.py)  # tests of a module beside its own

entry() {  # a list in the form of setup.cfg
  echo "$1="
  shift
  printf '  %s\n' "$@"
}

mutate() {  # MODULE: copy, mutate, run its tests
  local copy=$out/$1
  mkdir -p "$copy"
  cp -ru src tests pyproject.toml README.md LICENSE "$copy/"
  cp tools/mutmut_shim.py "$copy/src/"
  {
    echo "[mutmut]"
    entry source_paths src
    entry only_mutate "src/crowdtree/$1.py"
    entry also_copy tests pyproject.toml README.md LICENSE
    entry pytest_add_cli_args -p mutmut_shim -p no:cacheprovider -p no:xdist
    entry pytest_add_cli_args_test_selection "tests/$(dirname "$1")/test_$(basename "$1").py" ${ALSO[$1]:-}
    # of processor time: a busy machine does not pass for a killed mutant, an endless loop does
    echo "timeout_multiplier=4"
    echo "timeout_constant=5"
    echo "use_git_change_detection=false"
  } > "$copy/setup.cfg"
  (
    cd "$copy"
    PYTHONPATH=src nice -n 10 "$bin/mutmut" run --max-children "${JOBS:-2}" > mutmut.log 2>&1 ||
      { tail -n 40 mutmut.log; exit 1; }
    "$bin/mutmut" results --all true > results.txt
  )
}

mkdir -p "$out"
for module in ${MODULES:-core/voting core/scores core/evaluation designs/staffing}; do
  mutate "$module"
done

"$bin/python" - "$explained" "$out"/*/*/results.txt <<'PY'
import pathlib
import re
import sys

explained, *results = (pathlib.Path(name) for name in sys.argv[1:])
known = set(re.findall(r"`(crowdtree\.\S+__mutmut_\d+)`", explained.read_text()))
unexplained = 0
for path in results:
    found = re.findall(r"(crowdtree\.\S+__mutmut_\d+): (.+)", path.read_text())
    alive = {name for name, status in found if status not in ("killed", "timeout")}
    unexplained += len(alive - known)
    for name, status in found:
        if name in alive - known:
            print(f"{status}, not explained: {name}")
    print(
        f"{path.parent.name}: {len(found)} mutants, {len(found) - len(alive)} killed, "
        f"{len(alive & known)} explained, {len(alive - known)} left"
    )
sys.exit(bool(unexplained))
PY
