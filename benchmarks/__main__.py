"""Run the benchmarks of design, one after the other: ``python -m benchmarks``.

The others (``ls benchmarks``) run alone, each with ``--help``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "measured" / "benchmarks.md"
for name in ("design_scale", "small"):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--out", str(REPORT)]
    subprocess.run(command, check=True, cwd=ROOT)
