"""A client's life as its requests: all that the checks know of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

HEARTBEATS: Final = ("Heartbeat", "ConsumerGroupHeartbeat")
OF_COORDINATORS: Final = (*HEARTBEATS, "JoinGroup", "SyncGroup", "OffsetCommit", "OffsetFetch", "LeaveGroup")
"""Requests that a member sends to its coordinator."""

OF_MEMBERS: Final = ("Heartbeat", "OffsetCommit", "JoinGroup", "SyncGroup")
"""Requests that FENCED_INSTANCE_ID can answer."""

SHOWN: Final = (*OF_COORDINATORS, "FindCoordinator", "InitProducerId", "TxnOffsetCommit", "EndTxn")
LONGEST_EVIDENCE: Final = 12


class ClientOutcome(StrEnum):
    """End of a trouble."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_PLAYED = "not played"


@dataclass(frozen=True)
class ClientVerdict:
    """The outcome of one trouble, its reason, and the requests that show it."""

    outcome: ClientOutcome
    reason: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClientLife:
    """Requests of one client from its start to its end. ``since`` is the mark at which the trouble began."""

    requests: tuple[RecordedRequest, ...]
    since: int = 0
    closed: bool = False
    """True for a program that ended by itself after SIGTERM."""

    hangs: bool = False
    """True for a program that runs on after SIGTERM."""

    processed: tuple[tuple[TopicPartition, int], ...] = ()
    """Records that the program says it has processed, by partition and offset."""

    def index_of(self, error: ErrorCode, apis: Sequence[str]) -> int | None:
        """Index of the first request of these APIs that was answered with an error after the trouble began."""
        for index, each in enumerate(self.requests):
            if each.mark > self.since and each.api in apis and error.name in each.errors():
                return index
        return None

    def fenced_at(self) -> int | None:
        """Index of the first request that another process with the same group.instance.id made fail.

        A request that does not name the group.instance.id is answered UNKNOWN_MEMBER_ID.
        """
        errors = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID)
        found = [index for error in errors if (index := self.index_of(error, OF_MEMBERS)) is not None]
        return min(found, default=None)

    def after(self, index: int) -> tuple[RecordedRequest, ...]:
        """Requests behind an index."""
        return self.requests[index + 1 :]

    @property
    def speaks_consumer_protocol(self) -> bool:
        """True for a member of the consumer protocol (KIP-848)."""
        return any(each.api == "ConsumerGroupHeartbeat" for each in self.requests)


def is_accepted(sent: RecordedRequest) -> bool:
    """Whether the request was answered without an error."""
    return sent.response is not None and not sent.errors()


def member_of(sent: RecordedRequest) -> str:
    """The member id in a request; empty where it has none."""
    request: Any = sent.request
    members = getattr(request, "members", ())
    return str(members[0].member_id if members else getattr(request, "member_id", ""))


def generation_of(sent: RecordedRequest) -> int | None:
    """Generation or member epoch in a request."""
    request: Any = sent.request
    for name in ("generation_id", "member_epoch", "generation_id_or_member_epoch"):
        if hasattr(request, name):
            return int(getattr(request, name))
    return None


def only(requests: Iterable[RecordedRequest], *apis: str) -> Iterator[RecordedRequest]:
    """Requests of these APIs."""
    return (each for each in requests if each.api in apis)


def lines(requests: Iterable[RecordedRequest]) -> tuple[str, ...]:
    """Requests for coordinators as text, the first ones where there are many."""
    shown = [line(each) for each in only(requests, *SHOWN)]
    left = len(shown) - LONGEST_EVIDENCE
    return (*shown[:LONGEST_EVIDENCE], f"… {left} more requests") if left > 0 else tuple(shown)


def line(sent: RecordedRequest) -> str:
    """A request and its answer as one line."""
    named = []
    if sent.api not in ("FindCoordinator", "InitProducerId", "EndTxn"):
        named.append(f"member {member_of(sent) or '(none)'}")
    generation = generation_of(sent)
    if generation is not None:
        named.append(f"{'epoch' if sent.api == 'ConsumerGroupHeartbeat' else 'generation'} {generation}")
    answer = "no answer" if sent.response is None else " ".join(sent.errors()) or "NONE"
    if sent.api == "JoinGroup" and is_accepted(sent):
        joined: Any = sent.response
        answer = f"generation {joined.generation_id}, member {joined.member_id}"
    return f"#{sent.mark} {' '.join([sent.api, *named])} -> {answer}"
