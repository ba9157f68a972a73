"""Reasons for changes between releases, as far as they are known: by the releases between which they came."""

from __future__ import annotations

from typing import Final

NOTES: Final[dict[tuple[str, str], tuple[str, ...]]] = {}
