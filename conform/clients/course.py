"""A client on its way through a trouble: its next requests, its identity, its pauses, the time until it was well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rejoin.conform.clients.observed import HEARTBEATS, SHOWN, ClientLife, generation_of, is_accepted, member_of, only
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.units import format_duration

_NO_TROUBLE: Final = ErrorCode.MEMBER_ID_REQUIRED.name
"""The answer to each first JoinGroup (KIP-394)."""


@dataclass(frozen=True)
class ClientCourse:
    """The course of a client from the first request that was refused or got no answer. Times in ms."""

    refused: int
    """Number of refused or unanswered requests."""

    joined_as: str | None
    """``the same member`` or ``a new member``; none where it did not join again."""

    generations: tuple[int, int] | None
    """Generation, or epoch, before and at the end."""

    pause_ms: int | None
    """Mean time between refused attempts of the API with the most; none where no API has two."""

    heartbeats: int
    """Heartbeats until it joined, or until it was well where it did not join."""

    committed: bool
    """True where a commit was accepted before it joined again."""

    well_after_ms: int | None
    """Time until a heartbeat, and the API that was refused last, were accepted; none where that did not happen."""

    def __str__(self) -> str:
        said = []
        if self.joined_as is not None:
            said.append(f"joined as {self.joined_as}" + (", committed before" if self.committed else ""))
        if self.generations is not None and self.generations[0] != self.generations[1]:
            said.append(f"generation {self.generations[0]} to {self.generations[1]}")
        if self.refused > 1:
            said.append(f"{self.refused} refused")
        if self.pause_ms is not None:
            said.append(f"{format_duration(self.pause_ms)} between attempts")
        if self.heartbeats:
            said.append(f"{self.heartbeats} heartbeats meanwhile" if self.heartbeats > 1 else "1 heartbeat meanwhile")
        if self.well_after_ms is not None:
            said.append(f"well after {format_duration(self.well_after_ms)}")
        return "; ".join(said)


def course_of(life: ClientLife) -> ClientCourse | None:
    """The course of a client, or none where each of its requests was accepted."""
    requests = [each for each in only(life.requests, *SHOWN) if each.errors() != [_NO_TROUBLE]]
    # What is last may still wait for its answer.
    hits = [index for index, each in enumerate(requests[:-1]) if each.mark > life.since and not is_accepted(each)]
    if not hits:
        return None
    hit, last = hits[0], hits[-1]
    refused = requests[hit]
    joins = [index for index in range(hit, len(requests)) if _joins(requests[index])]
    well = _well_at(requests, last)
    until = joins[0] if joins else len(requests) if well is None else well
    before = list(only(requests[: hit + 1], *HEARTBEATS, "OffsetCommit"))
    after = [each for each in only(requests[hit:], *HEARTBEATS) if is_accepted(each)]
    return ClientCourse(
        refused=len(hits),
        joined_as=_as_whom(requests[joins[0]], before) if joins else None,
        generations=_generations(before[-1:], after[-1:]),
        pause_ms=_pause(requests[index] for index in hits),
        heartbeats=sum(1 for _ in only(requests[hit + 1 : until], *HEARTBEATS)),
        committed=bool(joins) and any(is_accepted(each) for each in only(requests[hit + 1 : until], "OffsetCommit")),
        well_after_ms=None if well is None else requests[well].at_ms - refused.at_ms,
    )


def _joins(sent: RecordedRequest) -> bool:
    if not is_accepted(sent):
        return False
    return sent.api == "JoinGroup" or (sent.api == "ConsumerGroupHeartbeat" and generation_of(sent) == 0)


def _as_whom(join: RecordedRequest, before: Sequence[RecordedRequest]) -> str:
    return "the same member" if before and member_of(join) == member_of(before[-1]) else "a new member"


def _generations(before: Sequence[RecordedRequest], after: Sequence[RecordedRequest]) -> tuple[int, int] | None:
    old = [generation for each in before if (generation := generation_of(each)) is not None]
    new = [generation for each in after if (generation := generation_of(each)) is not None]
    return (old[-1], new[-1]) if old and new else None


def _pause(refused: Iterable[RecordedRequest]) -> int | None:
    times: dict[str, list[int]] = {}
    for each in refused:
        times.setdefault(each.api, []).append(each.at_ms)
    most = max(times.values(), key=len)
    return (most[-1] - most[0]) // (len(most) - 1) if len(most) > 1 else None


def _well_at(requests: Sequence[RecordedRequest], last: int) -> int | None:
    """Index at which both a heartbeat and the API of the last refused request are accepted."""
    left = {requests[last].api, "heartbeat"}
    for index in range(last + 1, len(requests)):
        if is_accepted(requests[index]):
            left -= {requests[index].api, *(["heartbeat"] if requests[index].api in HEARTBEATS else [])}
            if not left:
                return index
    return None
