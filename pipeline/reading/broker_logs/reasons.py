"""Reads why a rebalance began, by the texts of :mod:`rejoin.journal.kafka_logs.reasons`.

The texts of every version differ in their fixed words; ids may hold nearly anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rejoin.journal.kafka_logs.reasons import CLIENT_REASON, NOT_PROVIDED, REASONS

UNKNOWN: Final = "unknown"
"""The class of a cause that the log does not have."""

_NO_REASONS: Final = (NOT_PROVIDED, "null", "")


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause class of the journal, and the member that caused it. ``members``: all that the reason names."""

    cause: str
    member_id: str | None = None
    group_instance_id: str | None = None
    client_reason: str | None = None
    members: tuple[str, ...] = ()
    state: str | None = None
    """The group's state before, where the reason has it."""
    error: str | None = None


_ONLY_READ: Final = (
    ("rejoin-preparing", r"Member (?P<member>.*?) (?:is )?joining group during (?P<state>\w+)"),
    ("over-capacity", r"Freshly-loaded group .*is over capacity.*"),
    ("downgrade", r"Downgrade group .* from consumer to classic\.?"),
)
_FORMS: Final = [
    (cause, re.compile(form, re.DOTALL))
    for cause, form in (*((reason.kind, reason.pattern) for reason in REASONS), *_ONLY_READ)
]


def read_reason(text: str) -> Reason:
    """The cause in a reason; its class is ``unknown`` for words that no known version prints."""
    own, separator, theirs = text.partition(CLIENT_REASON)
    client = theirs if separator and theirs not in _NO_REASONS else None
    for cause, form in _FORMS:
        match = form.fullmatch(own)
        if match is None:
            continue
        found = match.groupdict()
        members = several(found["set"]) if found.get("set") is not None else ()
        if found.get("several"):
            members = tuple(found["several"].split(", "))
        member = found.get("member") or (members[0] if members else None)
        return Reason(
            cause,
            member,
            instance(found.get("instance")),
            client,
            members or ((member,) if member else ()),
            found.get("state"),
            found.get("error"),
        )
    return Reason(UNKNOWN, client_reason=client)


def instance(text: str | None) -> str | None:
    """An instance id as either language prints it: ``Some(i)`` and ``None``, ``i`` and ``null``, ``Optional[i]``."""
    if text is None or text in ("None", "null", "Optional.empty"):
        return None
    if text.startswith("Some(") and text.endswith(")"):
        return text[5:-1]
    if text.startswith("Optional[") and text.endswith("]"):
        return text[9:-1]
    return text


def several(text: str) -> tuple[str, ...]:
    """The ids of a printed collection: ``Set(a, b)``, ``HashSet(a, b)``, ``[a, b]``."""
    match = re.fullmatch(r"\w*[(\[{](.*)[)\]}]", text, re.DOTALL)
    inside = text if match is None else match[1]
    return tuple(inside.split(", ")) if inside else ()
