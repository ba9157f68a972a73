"""Regular expressions that are compiled when they are first used: a log has lines of few of the known kinds."""

from __future__ import annotations

import re
from typing import Any, cast


def compiled_when_used(text: str) -> re.Pattern[str]:
    """A pattern in which a dot is any character, as :func:`re.compile` gives it, but cheap until it is used."""
    return cast("re.Pattern[str]", _Pattern(text))


class _Pattern:
    """Its methods are those of the compiled pattern, which become its own attributes with their first use."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self._text, re.DOTALL)
        self.__dict__.update(match=compiled.match, fullmatch=compiled.fullmatch, search=compiled.search)
        return getattr(compiled, name)
