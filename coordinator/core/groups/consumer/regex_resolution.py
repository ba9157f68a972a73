"""Regular expressions in RE2's syntax, as subscriptions have them: they match whole names of topics, in linear time.

``resolve_regexes`` is what a driver does for ``ResolveRegexes``. It touches nothing of a node, so any thread may do it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rejoin.coordinator.core.effects import ResolveRegexes
from rejoin.coordinator.core.inputs import RegexesResolved


@lru_cache(maxsize=256)
def _compiled(regex: str) -> Any:
    """The topics that match an expression; none if the expression is invalid."""
    import re2  # noqa: PLC0415 - most processes have no expressions

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error:
        return None


def is_valid(regex: str) -> bool:
    """Whether this is an expression."""
    return _compiled(regex) is not None


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """Topic names that an expression matches as a whole; none if the expression is invalid."""
    compiled = _compiled(regex)
    if compiled is None:
        return frozenset()
    return frozenset(name for name in names if compiled.fullmatch(name) is not None)


def resolve_regexes(wanted: ResolveRegexes) -> RegexesResolved:
    """The topics of each expression."""
    found = {regex: matching(regex, wanted.topics) for regex in wanted.regexes}
    return RegexesResolved(wanted.partition, wanted.epoch, wanted.group_id, found, wanted.version)
