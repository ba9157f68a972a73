"""History of each request: when it was sent, arrived, was answered, came back; or where it was lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Final

from rejoin.client.core.inputs import Failure
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.simulation.kernel import Millis, World
from rejoin.simulation.network import Exchange, NetworkObserver

NOT_YET: Final = -1

LARGE: Final = frozenset({"Fetch", "ListOffsets", "Metadata", "ApiVersions"})
"""Requests that are kept only if they fail: there are many, and they change no group."""

MEMBERSHIP: Final = frozenset({"JoinGroup", "SyncGroup", "LeaveGroup", "InitProducerId", "EndTxn"})
"""Requests that are always of interest."""

LISTS: Final = ("members", "groups", "topics", "responses", "coordinators", "partitions", "partition_responses")
"""Fields with the parts of a response, each of which may have an error."""


class RequestFate(IntEnum):
    """Outcome of a request."""

    OPEN = 0
    ANSWERED = 1
    LOST_REQUEST = 2
    LOST_RESPONSE = 3
    TIMEOUT = 4
    DISCONNECTED = 5
    CANCELLED = 6
    """The client does not want the response any more: it was closed, killed, or has given the request up."""


@dataclass(slots=True, eq=False)
class RequestRow:
    """One request. Instants are -1 while they are to come; ``generation`` is what the client said, or a member epoch.

    ``is_minor``: nothing came of it, as of most heartbeats and commits.
    """

    number: int
    client: str
    node: str
    api: str
    sent_at: Millis
    generation: int
    arrived_at: Millis = NOT_YET
    answered_at: Millis = NOT_YET
    ended_at: Millis = NOT_YET
    fate: RequestFate = RequestFate.OPEN
    error: str = ""
    is_blocked: bool = False
    is_minor: bool = False

    def values(self) -> list[Any]:
        """The row as JSON has it."""
        return [
            *(self.number, self.client, self.node, self.api, self.sent_at, self.arrived_at, self.answered_at),
            *(self.ended_at, int(self.fate), self.error, self.generation, int(self.is_minor), int(self.is_blocked)),
        ]


class RequestHistory(NetworkObserver):
    """Keeps a row for each request of a run, in the order in which they were sent."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.rows: list[RequestRow] = []
        self._open: dict[Exchange, RequestRow] = {}
        self._changed: dict[int, RequestRow] = {}
        self._last = 0

    def sent(self, exchange: Exchange) -> None:
        api = type(exchange.request).__name__.removesuffix("Request")
        self._last += 1
        connection, now = exchange.connection, self._world.now
        row = RequestRow(self._last, connection.client.name, connection.node.name, api, now, _generation(exchange))
        self._open[exchange] = row
        if api not in LARGE:
            self._keep(row)

    def arrived(self, exchange: Exchange) -> None:
        row = self._open.get(exchange)
        if row is not None:
            row.arrived_at = self._world.now
            self._change(row)

    def answered(self, exchange: Exchange) -> None:
        row = self._open.get(exchange)
        if row is not None:
            row.answered_at = self._world.now
            row.error = _error_of(exchange.response)
            self._change(row)

    def lost(self, exchange: Exchange) -> None:
        row = self._open.get(exchange)
        if row is not None:
            row.fate = RequestFate.LOST_REQUEST if row.answered_at == NOT_YET else RequestFate.LOST_RESPONSE
            self._change(row)

    def blocked(self, exchange: Exchange) -> None:
        row = self._open.get(exchange)
        if row is not None:
            row.is_blocked = True
            self._change(row)

    def ended(self, exchange: Exchange, failure: Failure | None) -> None:
        row = self._open.pop(exchange, None)
        if row is None:
            return
        row.ended_at = self._world.now
        if row.fate is RequestFate.OPEN:
            if failure is not None:
                row.fate = RequestFate.TIMEOUT if failure is Failure.TIMEOUT else RequestFate.DISCONNECTED
            else:
                row.fate = RequestFate.CANCELLED if row.answered_at == NOT_YET else RequestFate.ANSWERED
        is_fine = row.fate is RequestFate.ANSWERED and not row.error
        if row.api in LARGE:
            if not is_fine and row.fate is not RequestFate.CANCELLED:
                self._keep(row)
            return
        row.is_minor = is_fine and row.api not in MEMBERSHIP and not _changes_group(exchange)
        self._change(row)

    def _keep(self, row: RequestRow) -> None:
        self.rows.append(row)
        self._changed[row.number] = row

    def _change(self, row: RequestRow) -> None:
        if row.api not in LARGE or row.number in self._changed:
            self._changed[row.number] = row

    def take_changed(self) -> list[RequestRow]:
        """The rows that are new or have changed since the last call."""
        changed = list(self._changed.values())
        self._changed.clear()
        return changed

    def open_at(self, at: Millis) -> Iterator[RequestRow]:
        """The requests that had been sent by an instant and had not ended."""
        for row in self.rows:
            if row.sent_at <= at and (row.ended_at == NOT_YET or row.ended_at > at):
                yield row


def _generation(exchange: Exchange) -> int:
    request: Any = exchange.request
    for name in ("generation_id", "generation_id_or_member_epoch", "member_epoch"):
        found = getattr(request, name, None)
        if isinstance(found, int):
            return found
    return -1


def _error_of(response: Response | None) -> str:
    """The first error in a response; "" where it has none."""
    for part in _parts(response, depth=3):
        error = getattr(part, "error_code", None)
        if isinstance(error, ErrorCode) and error is not ErrorCode.NONE:
            return error.name
    return ""


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """A response and the entries of its lists."""
    yield value
    if depth:
        for name in _lists_of(value.__class__):
            parts = getattr(value, name, None)
            if isinstance(parts, (tuple, list)):
                for part in parts:
                    yield from _parts(part, depth - 1)


@cache
def _lists_of(kind: type) -> tuple[str, ...]:
    """The fields of a kind of message that may be lists of its parts: asking for one that it has not is slow."""
    fields = getattr(kind, "model_fields", {})
    return tuple(name for name in LISTS if name in fields or hasattr(kind, name))


def _changes_group(exchange: Exchange) -> bool:
    """Whether a heartbeat of a consumer group says or brings anything new."""
    request, response = exchange.request, exchange.response
    epoch = getattr(request, "member_epoch", None)
    if epoch is None or not type(request).__name__.startswith("ConsumerGroupHeartbeat"):
        return False
    return (
        epoch <= 0
        or getattr(request, "topic_partitions", None) is not None
        or getattr(response, "assignment", None) is not None
        or getattr(response, "member_epoch", epoch) != epoch
    )
