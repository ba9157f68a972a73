"""The scenarios that come with rejoin, by name."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Final

GALLERY: Final = Path(__file__).parents[1] / "gallery"
_NEAREST: Final = 3


def names() -> list[str]:
    """The names of all scenarios, in order."""
    return sorted(path.stem for path in GALLERY.glob("*.yaml"))


def hint(name: str) -> str:
    """Suggestion for an unknown name: the intended name, or the nearest ones."""
    meant = get_close_matches(name, names(), n=1)
    if meant:
        return f"is it {meant[0]}?"
    nearest = get_close_matches(name, names(), n=_NEAREST, cutoff=0.0)
    return f"the nearest are {', '.join(nearest)}, and rejoin gallery list shows all"
