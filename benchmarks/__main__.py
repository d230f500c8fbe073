"""Run the benchmarks of design, one after the other: ``python -m benchmarks``.

The others (``ls benchmarks``) run alone, each with ``--help``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REPORT = HERE.parent / "docs" / "measured" / "benchmarks.md"
SCRIPTS = (
    ("design_scale.py", "--out", str(REPORT)),
    ("small.py", "--out", str(REPORT)),
)

for script, *arguments in SCRIPTS:
    subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)
