"""Compiled kernels: where their code is kept, and what is said when they are compiled."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import crowdtree
from crowdtree.core import jit

LEAN = """
import logging, sys
logging.basicConfig(level=logging.INFO, format='%(message)s', stream=sys.stdout)
from numba.core import caching
def refuse(self):
    raise OSError('read-only file system')
for name in dir(caching):  # whoever runs the tests may be allowed to write everywhere
    locator = getattr(caching, name)
    if 'CacheLocator' in name and hasattr(locator, 'ensure_cache_path'):
        locator.ensure_cache_path = refuse
from crowdtree.designs.designers import kernels
kernels._xlog2(0.5)
"""


def test_without_a_writable_folder_kernels_are_compiled_and_not_kept():
    environment = {**os.environ, "HOME": "/nonexistent"}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment["PYTHONPATH"] = str(Path(crowdtree.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LEAN], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "set NUMBA_CACHE_DIR to a writable folder" in done.stdout


def test_compiling_is_announced_once_per_package(caplog):
    jit._announce.cache_clear()
    with caplog.at_level(logging.INFO, logger="crowdtree.core.jit"):
        jit._announce("crowdtree.designs.designers")
        jit._announce("crowdtree.designs.designers")
    assert [record.getMessage() for record in caplog.records] == ["compiling, once (about 10 s)"]
