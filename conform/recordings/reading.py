"""Reads the packed recordings: JSON, an object a line, compressed. A script is its header and then its lines."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson

Json: TypeAlias = dict[str, Any]

FOLDER: Final = Path(__file__).parent
RELEASE: Final = "4.4.0"
"""Release of Kafka whose recordings are played."""
SETS: Final = {
    "groups": "groups of the classic protocol",
    "offsets": "committed offsets",
    "consumer-protocol": "groups of the consumer protocol (KIP-848), and classic members among others",
    "transactions": "producers and transactions",
    "records": "Produce, Fetch and ListOffsets",
    "wire": "versions of requests, and requests that are wrong",
    "admin": "topics and settings, as admin clients see them",
    "share-groups": "share groups (KIP-932): members, acquisitions, acknowledgements, dead letters, state",
    "streams-groups": "streams groups (KIP-1071): topologies, internal topics, tasks, standbys, static members",
}
"""The sets by name, and the subject of each."""


@dataclass(frozen=True)
class PackedScript:
    """One recorded script: its name, the cluster that it was recorded on, and the lines.

    ``unplayable`` says why it cannot be asked of a broker over its protocol; such a script has no lines.
    """

    of_set: str
    name: str
    header: Json
    lines: list[Json]

    @property
    def full_name(self) -> str:
        return f"{self.of_set}/{self.name}"

    @property
    def unplayable(self) -> str | None:
        found: str | None = self.header.get("unplayable")
        return found

    @property
    def is_steps(self) -> bool:
        """Whether the script was written in steps."""
        return "steps" in self.header

    @property
    def is_brief(self) -> bool:
        """Whether answers are recorded in the form of :mod:`rejoin.conform.comparison.brief_answers`."""
        return bool(self.header.get("brief"))

    @property
    def requests(self) -> list[Json]:
        """The lines of requests."""
        return [line for line in self.lines if "request" in line]


def packed_path(name: str, release: str = RELEASE) -> Path:
    """The file of a set."""
    return FOLDER / release / f"{name}.jsonl.xz"


def read_set(name: str, release: str = RELEASE) -> list[PackedScript]:
    """The scripts of a set, in order."""
    return list(_scripts(name, lzma.decompress(packed_path(name, release).read_bytes())))


def pack(lines: Iterable[Json]) -> bytes:
    """The bytes of a file with these lines."""
    text = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def _scripts(of_set: str, data: bytes) -> Iterator[PackedScript]:
    found: PackedScript | None = None
    for line in map(orjson.loads, data.splitlines()):
        if "script" in line:
            if found is not None:
                yield found
            found = PackedScript(of_set, line["script"], line, [])
        elif found is not None:
            found.lines.append(line)
    if found is not None:
        yield found
