"""The files beside a page: its scripts and style sheets, and what a browser may do for it."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import PurePath
from typing import Final, NamedTuple

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A page's Content-Security-Policy: nothing from elsewhere."""
_TYPES: Final = {".js": "text/javascript", ".css": "text/css"}


class Asset(NamedTuple):
    """A file of a page."""

    text: str
    content_type: str


@lru_cache(maxsize=128)
def asset(package: str, name: str) -> Asset | None:
    """A script or style sheet of a page, or none where the package has no such file."""
    known = {each.name: each for each in files(package).iterdir() if PurePath(each.name).suffix in _TYPES}
    if name not in known:
        return None
    return Asset(known[name].read_text("utf-8"), _TYPES[PurePath(name).suffix])
