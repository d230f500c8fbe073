"""Compiled code that is older than its sources is not used."""

from __future__ import annotations

import os

from crowdtree.designs.designers.exact._jit import forget_stale_code


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
