"""Receivers of webhooks check signatures without the server's packages."""

from __future__ import annotations

import subprocess
import sys


def test_signatures_are_verified_with_the_standard_library_alone():
    code = (
        "import sys; from crowdtree.webhooks import sign, verify_signature; "
        "header = sign('s', b'{}', 1000.0); "
        "print(verify_signature('s', header, b'{}', 1001.0), "
        "verify_signature('s', header, b'{ }', 1001.0), "
        "verify_signature('s', header, b'{}', 2000.0), "
        "[m for m in ('sqlalchemy', 'fastapi', 'pydantic', 'numba') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "True False False []"
