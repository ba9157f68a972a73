"""When a consumer that leaves its group gives up its partitions, where its library has no line about that.

kafka-python before 2.1, aiokafka and franz-go log that they leave and, as they stop, no revocation. aiokafka after a
late poll leaves as well, and has no line that says why; it goes on processing, and revokes when it polls again.
franz-go that learns from a heartbeat that it is no member any more logs no loss of its partitions. librdkafka that was
paused finds, as it wakes, that its session is over and that no poll came: only the first of these is the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from rejoin.journal.kafka_logs.clients.names import AIOKAFKA, FRANZ_GO, KAFKA_PYTHON, RDKAFKA
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.families import STARTED

_SILENT: Final = (AIOKAFKA, FRANZ_GO, KAFKA_PYTHON)
"""Families that revoke nothing as they stop."""
_OF_NEW_PROCESSES: Final = (STARTED, "coordinator_found", "subscribing")
"""Statements between a leave and the next revocation that show a process to have begun."""
_SESSION: Final = "Consumer group session timed out"
WAKES_MS: Final = 1_000
"""A process that goes on notices within this what it missed."""
_OUT: Final = ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID")


@dataclass(slots=True)
class Leaving:
    """Follows one consumer: what it owns, and its last leave while it is not known what came of it."""

    owned: tuple[tuple[str, int], ...] = ()
    left: Statement | None = None
    late: Statement | None = None
    """Of librdkafka: a late poll that may have been a pause."""
    woke_at_ms: int = -WAKES_MS - 1

    def completed(self, family: str, statement: Statement) -> Iterator[Statement]:
        """A statement of the consumer, behind what it shows of the leave before it."""
        if family == RDKAFKA:
            yield from self._without_pauses(statement)
            return
        if family not in _SILENT:
            yield statement
            return
        kind, partitions = statement.kind, [tuple(each) for each in statement.values.get("partitions", ())]
        if self.left is not None:
            if kind == "partitions_revoked" and partitions and family == AIOKAFKA:
                yield replace(self.left, kind="poll_timeout_exceeded")
            if kind in ("partitions_revoked", "partitions_lost"):
                self.left = None
            elif kind in _OF_NEW_PROCESSES:
                yield from self.ended()
        if kind == "partitions_assigned":
            kept = self.owned if family == FRANZ_GO else ()
            self.owned = tuple(dict.fromkeys((*kept, *partitions)))
        elif kind in ("partitions_revoked", "partitions_lost"):
            self.owned = tuple(each for each in self.owned if each not in partitions)
        elif kind == STARTED:
            self.owned = ()
        elif kind == "group_left" and self.owned:
            self.left = statement
        yield statement
        if kind == "heartbeat_failed" and family == FRANZ_GO and self.owned and _is_out(statement):
            lost, self.owned = list(self.owned), ()
            yield replace(statement, kind="partitions_lost", values={**statement.values, "partitions": lost})

    def _without_pauses(self, statement: Statement) -> Iterator[Statement]:
        """Without the late polls that are beside the end of a session."""
        lost_session = statement.text.startswith(_SESSION)
        if lost_session:
            self.woke_at_ms = statement.at_ms
        if self.late is not None and abs(statement.at_ms - self.late.at_ms) > WAKES_MS:
            yield self.late
            self.late = None
        elif lost_session:
            self.late = None
        if statement.kind != "poll_timeout_exceeded":
            yield statement
        elif abs(statement.at_ms - self.woke_at_ms) > WAKES_MS:
            self.late = statement

    def ended(self) -> Iterator[Statement]:
        """Statements due at the end of the log: a pending late poll, and the revocation of a consumer that left."""
        late, self.late = self.late, None
        if late is not None:
            yield late
        left, owned, self.left, self.owned = self.left, self.owned, None, ()
        if left is not None:
            yield replace(left, kind="partitions_revoked", values={**left.values, "partitions": list(owned)})


def _is_out(statement: Statement) -> bool:
    """Whether the answer to a heartbeat says that the consumer is no member any more."""
    return any(error in str(statement.values.get("problem")) for error in _OUT)
