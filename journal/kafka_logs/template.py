"""A line of a log as a template: one text from which lines are written, and a regular expression that reads them.

    Stabilized group {group} generation {generation}<2.8-: with {members} members><4.0-:.>

``{name}`` is a field; ``{name?}`` reads as little as possible. ``<A-B:text>`` is there in versions from A up to, and
not including, B; each may be missing, and ``<A-B:text|other>`` has another text elsewhere. ``~regex~`` is only read:
what some version prints that is never written here. Parts may be nested. Outside of them ``>`` and ``|`` are text.

A reader does not know the version, so it takes every part that some version has as optional.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

Version: TypeAlias = tuple[int, int]
"""Major and minor; patch releases did not change these texts."""

OLDEST: Final[Version] = (1, 1)
NEWEST: Final[Version] = (4, 4)
JAVA_SINCE: Final[Version] = (4, 0)
"""Kafka: up to 3.9 the coordinator is the one in Scala, from 4.0 on the one in Java."""

VERSIONS: Final[tuple[Version, ...]] = (
    *((1, minor) for minor in (1,)),
    *((2, minor) for minor in range(9)),
    *((3, minor) for minor in range(10)),
    *((4, minor) for minor in range(5)),
)
"""Every version whose logs are known."""

_EPOCH: Final = r"(?:OptionalInt\[(?P<epoch>-?\d+)\]|OptionalInt\.empty|(?P<plain_epoch>-?\d+))"
_FORMS: Final = {
    "generation": r"-?\d+",
    "partition": r"\d+",
    "topic": r"\S+",
    "state": r"\w+",
    "members": r"\d+",
    "capacity": r"\d+",
    "static_members": r"\d+",
    "offsets": r"\d+",
    "groups": r"\d+",
    "records": r"\d+",
    "load_ms": r"\d+",
    "took_ms": r"-?\d+",
    "scheduler_ms": r"\d+",
    "bytes": r"\d+",
    "session_timeout_ms": r"\d+",
    "rebalance_timeout_ms": r"\d+",
    "waited_ms": r"-?\d+",
    "member_epoch": r"-?\d+",
    "topology_epoch": r"-?\d+",
    "local_epoch": r"-?\d+",
    "late_ms": r"-?\d+",
    "limit_ms": r"\d+",
    "before": r"\d+",
    "after": r"\d+",
    "producer_id": r"\d+",
    "producer_epoch": r"-?\d+",
    "current_epoch": r"-?\d+",
    "coordinator_epoch": r"-?\d+",
    "number": r"\d+",
    "offset": r"-?\d+",
    "metadata_hash": r"-?\d+",
    "topic_id": r"[\w-]{22}",
    "state_epoch": r"-?\d+",
    "limit": r"\d+",
    "in_flight": r"\d+",
    "protocol": r"\w+",
    "member_protocol": r"\w+",
    "operation": r"\S+",
    "error": r"\S+",
    "scala_instance": r"Some\(.*?\)|None|\S+",
}
"""Patterns of fields that are not free text."""

_TOKEN: Final = re.compile(
    r"\{(?P<field>\w+)(?P<lazy>\?)?\}|<(?P<since>\d+\.\d+)?-(?P<before>\d+\.\d+)?:|~(?P<read>[^~]*)~|(?P<end>>)|(?P<or>\|)"
)


@dataclass(slots=True)
class _Part:
    """A piece of a template: a text, a field, something that is only read, or an option with pieces of its own."""

    text: str = ""
    name: str | None = None
    lazy: bool = False
    read: str | None = None
    since: Version = OLDEST
    before: Version | None = None
    inside: list[_Part] | None = None
    otherwise: list[_Part] | None = None

    def is_in(self, version: Version) -> bool:
        return _is_between(version, self.since, self.before)


def _is_between(version: Version, since: Version, before: Version | None) -> bool:
    return since <= version and (before is None or version < before)


def _version(text: str | None) -> Version | None:
    if text is None:
        return None
    major, minor = text.split(".")
    return int(major), int(minor)


def _parsed(text: str) -> list[_Part]:
    parts: list[_Part] = []
    stack: list[tuple[list[_Part], _Part]] = []
    here, at = parts, 0
    for token in _TOKEN.finditer(text):
        if token.start() > at:
            here.append(_Part(text[at : token.start()]))
        at = token.end()
        if token["field"]:
            here.append(_Part(name=token["field"], lazy=token["lazy"] is not None))
        elif token["read"] is not None:
            here.append(_Part(read=token["read"]))
        elif not stack and (token["or"] or token["end"]):
            here.append(_Part(token[0]))
        elif token["or"]:
            option = stack[-1][1]
            here = option.otherwise = []
        elif token["end"]:
            here, _ = stack.pop()
        else:
            option = _Part(since=_version(token["since"]) or OLDEST, before=_version(token["before"]), inside=[])
            here.append(option)
            assert option.inside is not None
            stack.append((here, option))
            here = option.inside
    assert not stack, f"a part of {text!r} does not end"
    if at < len(text):
        here.append(_Part(text[at:]))
    return parts


@dataclass(frozen=True)
class Template:
    """A line of some versions. ``kind``: what it says. ``bracket``: how its group stands before it, if it does so."""

    kind: str
    text: str
    since: Version = OLDEST
    before: Version | None = None
    logger: str = ""
    level: str = "INFO"
    bracket: str = ""
    variant: str = ""
    """Which of several lines of this kind."""
    names_member: bool = False
    """Whether the member stands in brackets behind the group."""

    @cached_property
    def _parts(self) -> list[_Part]:
        return _parsed(self.text)

    def is_in(self, version: Version) -> bool:
        """Whether brokers of a version print it."""
        return _is_between(version, self.since, self.before)

    def format(self, version: Version, values: Mapping[str, Any]) -> str:
        """The line as a version prints it."""
        member = f"[MemberId {values['member']}]" if self.names_member else ""
        prefix = f"[{self.bracket}{values['group']}]{member} " if self.bracket else ""
        return prefix + "".join(_written(self._parts, version, values))

    def fields(self, version: Version) -> list[str]:
        """Fields in the line of a version."""
        bracketed = [*(["group"] if self.bracket else []), *(["member"] if self.names_member else [])]
        return [*bracketed, *_named(self._parts, version)]

    @property
    def pattern(self) -> str:
        """A regular expression for the line of any version, without its bracket."""
        return "".join(map(_pattern, self._parts))


def _written(parts: Iterable[_Part], version: Version, values: Mapping[str, Any]) -> Iterable[str]:
    for part in parts:
        if part.name is not None:
            yield str(values[part.name])
        elif part.inside is not None:
            yield from _written(part.inside if part.is_in(version) else part.otherwise or (), version, values)
        else:
            yield part.text


def _named(parts: Iterable[_Part], version: Version) -> Iterable[str]:
    for part in parts:
        if part.name is not None:
            yield part.name
        elif part.inside is not None:
            yield from _named(part.inside if part.is_in(version) else part.otherwise or (), version)


def _pattern(part: _Part) -> str:
    if part.read is not None:
        return part.read
    if part.name == "epoch":
        return _EPOCH
    if part.name is not None:
        form = _FORMS.get(part.name, ".*?" if part.lazy else ".*")
        return f"(?P<{'instance' if part.name == 'scala_instance' else part.name}>{form})"
    if part.inside is None:
        return re.escape(part.text)
    inside = "".join(map(_pattern, part.inside))
    if part.otherwise is None:
        return f"(?:{inside})?"
    return f"(?:{inside}|{''.join(map(_pattern, part.otherwise))})"


def values_of(match: re.Match[str]) -> dict[str, str]:
    """The fields that a line has."""
    values = {name: value for name, value in match.groupdict().items() if value is not None}
    if "plain_epoch" in values:
        values["epoch"] = values.pop("plain_epoch")
    return values
