"""The envelope of a journal's rows, and how a row is written as JSON.

A row says which run it belongs to, who wrote it (``source``, ``node``), its number in that writer's stream (``seq``,
dense from 1, over restarts too), the instant, the name of the event and then the event's own fields, flat.
"""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple, get_args
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from rejoin.journal.events.base import Event

SCHEMA_VERSION: Final = 2
"""Of the rows that are written here. It rises with a renaming; :mod:`rejoin.journal.renames` has the older names."""

Source = Literal["coordinator", "client", "simulation"]
"""Who writes: a service, a process of consumers, or a simulation of both."""

SOURCES: Final[tuple[str, ...]] = get_args(Source)


class Envelope(BaseModel):
    """The first fields of every row. ``at_ms`` is ms since 1970, or since the start of a simulation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[2]
    run_id: str
    source: Source
    node: str
    seq: int = Field(ge=1)
    at_ms: int
    event: str


class JournalRow(NamedTuple):
    """A row that was read: its envelope, and the event as the very class that its writer used."""

    envelope: Envelope
    event: Event

    @property
    def seq(self) -> int:
        return self.envelope.seq


class JournalLine(NamedTuple):
    """A row as it stands in the file, without its line end."""

    seq: int
    text: bytes


class RowEncoder:
    """Writes rows of one stream and run as JSON."""

    def __init__(self, run_id: str, source: Source, node: str) -> None:
        head = json.dumps(
            {"schema_version": SCHEMA_VERSION, "run_id": run_id, "source": source, "node": node}, separators=(",", ":")
        )
        self._head = head[:-1] + ',"seq":'

    def encode(self, seq: int, at_ms: int, event: Event) -> bytes:
        """The row of an event, without its line end."""
        fields: bytes = event.__pydantic_serializer__.to_json(event)
        comma = "" if fields == b"{}" else ","
        return f'{self._head}{seq},"at_ms":{at_ms},"event":"{event.name}"{comma}'.encode() + fields[1:]


class StreamName(NamedTuple):
    """Whose rows: a source and its node. As text it is the beginning of a segment's file name."""

    source: str
    node: str

    def __str__(self) -> str:
        return f"{self.source}-{quote(self.node, safe='')}"
