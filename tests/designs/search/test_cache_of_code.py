"""Compiled code: where it is kept, when it is out of date, and what is said about compiling."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import crowdtree
from crowdtree.designs.designers.exact import _jit
from crowdtree.designs.designers.exact._jit import forget_stale_code

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
import numpy as np
from crowdtree.designs.designers.exact import bitset
bitset.count(np.zeros((1, 1), np.uint64), 0)
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


def test_compiling_is_announced_once(caplog):
    _jit.announce.cache_clear()
    with caplog.at_level(logging.INFO, logger=_jit.__name__):
        _jit.announce()
        _jit.announce()
    assert [record.getMessage() for record in caplog.records] == ["compiling, once (about 20 s)"]


def test_only_code_older_than_a_source_is_removed(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text("")
    os.utime(source, (1000, 1000))
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    for name, when in (("old.nbi", 999), ("old.1.nbc", 999), ("new.nbi", 1001), ("x.pyc", 1)):
        (cache / name).write_text("")
        os.utime(cache / name, (when, when))
    forget_stale_code(tmp_path)
    assert sorted(path.name for path in cache.iterdir()) == ["new.nbi", "x.pyc"]
