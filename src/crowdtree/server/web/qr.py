"""Links as QR codes, which phones read from a screen or from paper."""

from __future__ import annotations

import io

MAX_LINK = 1000
"""Characters of a link; the code of a longer one is too fine for phones."""
BORDER = 4
"""Blank modules around a code, which readers need."""


def qr_svg(link: str) -> str:
    """Draw a link as a QR code, an SVG picture without scripts; empty for a link that is too long.

    It is black on white in dark mode too, because few readers know inverted codes.

    >>> qr_svg("https://label.example/join/abc")[:40]
    '<svg xmlns="http://www.w3.org/2000/svg" '
    """
    if len(link) > MAX_LINK:
        return ""
    import segno  # takes a while, and few requests need it

    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", border=BORDER, dark="#000", light="#fff", xmldecl=False, omitsize=True
    )
    return out.getvalue().decode().strip()
