"""Recording of one client in one life: its members' requests, the waits before some of them, and its group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from conformance.members.exchanged import ADMIN
from conformance.members.proxy import ProxiedExchange
from conformance.members.sequences import MEMBERSHIP, OFFSETS, sequences
from conformance.members.transitions import transitions
from rejoin.protocol.errors import ErrorCode

LEAST_INTERVALS: Final = 3
"""Fewer are no rhythm."""


def recorded(exchanges: Sequence[ProxiedExchange], log: str, group: str) -> dict[str, Any]:
    """All that is kept of a client in a life; a restarted member is one."""
    own = [each for each in exchanges if each.client_id.startswith(f"{group}.") and not each.client_id.endswith(ADMIN)]
    names = sorted({each.client_id for each in own})
    return {
        "members": {
            name.removeprefix(f"{group}."): sequences(each for each in own if each.client_id == name) for name in names
        },
        "backoffs": backoffs(own),
        "intervals": intervals(own),
        "transitions": transitions(log, group),
    }


def backoffs(exchanges: Iterable[ProxiedExchange]) -> dict[str, int]:
    """Milliseconds from an error of the coordinator to what the same member asks it next: the median of each kind."""
    waits: dict[str, list[float]] = {}
    failed: dict[str, tuple[str, float]] = {}
    for each in exchanges:
        if each.api not in MEMBERSHIP | OFFSETS:
            continue
        error, since = failed.pop(each.client_id, ("", 0.0))
        if error and each.at >= since:
            waits.setdefault(f"{error}, then {each.api}", []).append(each.at - since)
        if each.answered_at is not None and (found := _error(each.response)) is not ErrorCode.NONE:
            failed[each.client_id] = f"{each.api} {found.name}", each.answered_at
    return {kind: round(1_000 * median(gaps)) for kind, gaps in sorted(waits.items())}


def intervals(exchanges: Sequence[ProxiedExchange]) -> dict[str, int]:
    """Milliseconds between requests that a member repeats by a timer: the median of each kind."""
    gaps: dict[str, list[float]] = {}
    for name in {each.client_id for each in exchanges}:
        for api in ("Heartbeat", "ConsumerGroupHeartbeat", "Metadata", "OffsetCommit"):
            asked = [each.at for each in exchanges if (each.client_id, each.api) == (name, api)]
            gaps.setdefault(api, []).extend(later - earlier for earlier, later in pairwise(asked))
    return {api: round(1_000 * median(each)) for api, each in sorted(gaps.items()) if len(each) >= LEAST_INTERVALS}


def _error(response: Any) -> ErrorCode:
    """The first error in a coordinator's answer."""
    return next((code for code in _codes(response) if code is not ErrorCode.NONE), ErrorCode.NONE)


def _codes(response: Any) -> Iterator[ErrorCode]:
    yield getattr(response, "error_code", ErrorCode.NONE)
    for name in ("coordinators", "groups", "topics", "partitions"):
        for each in getattr(response, name, ()) or ():
            yield from _codes(each)
