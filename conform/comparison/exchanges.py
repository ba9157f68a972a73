"""Recordings of exchanges: the values behind their names, and answers compared with theirs, field by field.

Names stand for what a broker makes up: ``pid-1`` for a producer id, ``id:NAME`` for a topic id, ``T+123`` for a time
near the recording.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from rejoin.conform.comparison.compare import ABSENT
from rejoin.conform.records.described_records import HEADER, batch_of, described_batches
from rejoin.conform.records.described_transaction_log import PRODUCER_IDS

TOLERANCE_MS: Final = 150
"""A real broker takes its time; in a replay a request is handled when it was sent."""
MADE_UP: Final = ("producerId", *PRODUCER_IDS, "sessionId", "memberId", "topicId")
"""Numbers that a broker makes up, and that have names in the recordings."""
NO_SESSION: Final = 0
NOT_COMPARED: Final = {"throttleTimeMs"}
EPOCHS: Final = {"partitionLeaderEpoch", "leaderEpoch", "coordinatorEpoch"}
"""Of these, after a restart, only whether they grew."""
TEXTS: Final = {"errorMessage", "batchIndexErrorMessage"}
"""Of these only whether they are null."""
_NAME: Final = re.compile(r"(pid|session|member)-\d+|id:.*")
_DRAWN: Final = re.compile(r"[\w-]{22}")
"""A member id that a broker has drawn, which recordings leave as it is."""
TIME: Final = re.compile(r"T([+-]\d+)")
_STATE_KEY: Final = re.compile(r"(.+):(id:[\w.-]+|[\w-]{22}):(\d+)")
"""The key of a share-partition's state: its group, the id of its topic, and its number."""
ORDERED_BY: Final = (
    "memberId",
    "groupId",
    "topicId",
    "name",
    "topic",
    "partitionIndex",
    "index",
    "partition",
    "transactionalId",
    "producerId",
)
"""The fields by which entries are put in order: the first that all of them have."""


class FieldDifference(NamedTuple):
    """A field of an answer that is not as recorded."""

    path: str
    recorded: Any
    other: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.recorded!r} was recorded, not {self.other!r}"


class NamedValues:
    """One recording on one broker: its names, with the values that the broker has made up for them."""

    def __init__(self, start: int, addresses: dict[str, dict[Any, Any]], *, is_fresh: bool = True) -> None:
        """``addresses`` has the names of hosts and ports by their values, under ``host`` and ``port``."""
        self.start = start
        self.lag = 0
        """Milliseconds between a request here and in the recording at most: waits differ, and times of answers."""
        self.was_restarted = False
        self.values: dict[str, Any] = {}
        self._names: dict[Any, str] = {}
        self._addresses = addresses
        self._is_fresh = is_fresh

    def name(self, value: Any, name: str) -> None:
        """Let a name stand for a value."""
        self._names[value] = name
        self.values[name] = value

    # --- what is sent

    def to_send(self, value: Any, key: str = "") -> Any:
        """A recorded request, or a part of one, with values in place of names, and records as base64."""
        if key == "records" and (value is None or "batches" in value):
            return None if value is None else base64.b64encode(self.records(value)).decode()
        if isinstance(value, dict):
            return {name: self.to_send(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self.to_send(each) for each in value]
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if state := _STATE_KEY.fullmatch(value):
            return f"{state[1]}:{self.values.get(state[2], state[2])}:{state[3]}"
        time = TIME.fullmatch(value)
        return self.start + int(time[1]) if time else self.values.get(value, value)

    def records(self, value: dict[str, Any]) -> bytes:
        """The bytes of batches that are described field by field."""
        batches = b"".join(self._batch(batch) for batch in value["batches"])
        return batches + base64.b64decode(value.get("rest", ""))

    def _batch(self, described: dict[str, Any]) -> bytes:
        return batch_of(described | {name: self._value(described[name]) for name in HEADER})

    # --- what comes back

    def learn(self, recorded: Any, ours: Any) -> None:
        """Take in the ids of producers, sessions and members that the broker has made up."""
        if isinstance(recorded, dict) and isinstance(ours, dict):
            for key, name in recorded.items():
                is_name = key in MADE_UP and isinstance(name, str) and _NAME.fullmatch(name)
                is_name = is_name or (key == "memberId" and isinstance(name, str) and _DRAWN.fullmatch(name))
                if is_name and name not in self.values and key in ours:
                    self.name(ours[key], name)
                self.learn(name, ours.get(key))
        elif isinstance(recorded, list) and isinstance(ours, list):
            for one, other in zip(recorded, ours, strict=False):
                self.learn(one, other)

    def named(self, value: Any, key: str = "") -> Any:
        """An answer, or a part of one, with names in place of made-up values, and records field by field."""
        if key == "records" and isinstance(value, str):
            return self._described(base64.b64decode(value))
        if isinstance(value, dict):
            return {name: self.named(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self.named(each) for each in value]
        if key in self._addresses and value in self._addresses[key]:
            return self._addresses[key][value]
        if key == "key" and isinstance(value, str) and (state := _STATE_KEY.fullmatch(value)):
            return f"{state[1]}:{self._names.get(state[2], state[2])}:{state[3]}"
        if key in (*MADE_UP, "port", "leader"):
            is_named = key != "sessionId" or value != NO_SESSION
            return self._names.get(value, value) if is_named else value
        return value

    def _described(self, data: bytes) -> dict[str, Any]:
        described = described_batches(data)
        for batch in described["batches"]:
            batch["producerId"] = self._names.get(batch["producerId"], batch["producerId"])
        return described

    # --- what differs

    def differences(self, recorded: Any, ours: Any, at: str = "") -> Iterator[FieldDifference]:
        """The fields of an answer, with its names, that are not as recorded."""
        key = at.rsplit(".", 1)[-1]
        if key in NOT_COMPARED:
            return
        if isinstance(recorded, dict) and isinstance(ours, dict):
            yield from self._differences_of_objects(recorded, ours, at)
        elif isinstance(recorded, list) and isinstance(ours, list):
            if len(recorded) != len(ours):
                yield FieldDifference(at, recorded, ours)
            for index, (one, other) in enumerate(zip(in_order(recorded), in_order(ours), strict=False)):
                yield from self.differences(one, other, f"{at}.{index}")
        elif not self._is_alike(key, recorded, ours):
            is_time = isinstance(recorded, str) and TIME.fullmatch(recorded) and isinstance(ours, int)
            yield FieldDifference(at, recorded, f"T{ours - self.start:+d}" if is_time else ours)

    def _differences_of_objects(
        self, recorded: dict[str, Any], ours: dict[str, Any], at: str
    ) -> Iterator[FieldDifference]:
        if "control" in recorded:
            # Key and value of a marker are shown in its words, too.
            recorded, ours = recorded["control"], ours.get("control", {})
        if not recorded:
            # A tagged struct that was absent.
            if any(each not in (-1, "", []) for each in ours.values()):
                yield FieldDifference(at, ABSENT, ours)
            return
        for name in {**recorded, **ours}:
            if name in recorded and name in ours:
                yield from self.differences(recorded[name], ours[name], f"{at}.{name}")
            elif not (name == "records" and "compressed" in recorded):
                yield FieldDifference(f"{at}.{name}", recorded.get(name, ABSENT), ours.get(name, ABSENT))

    def _is_alike(self, key: str, recorded: Any, ours: Any) -> bool:
        if key in TEXTS:
            return (recorded is None) is (ours is None)
        if key in ("producerId", *PRODUCER_IDS) and recorded == 0:
            # No producer at all; or the broker has drawn 0 as the first one's id.
            return bool(self.values.get(ours, ours) == 0)
        if isinstance(recorded, str) and (time := TIME.fullmatch(recorded)) and isinstance(ours, int):
            return abs(ours - self.start - int(time[1])) <= TOLERANCE_MS + self.lag
        if key in EPOCHS and not self._is_fresh:
            return bool((recorded < 0) == (ours < 0))
        if key in EPOCHS and self.was_restarted:
            return bool((recorded > 0) == (ours > 0))
        if key in ("rest", "compressed"):
            return isinstance(ours, str) and (key == "compressed" or len(recorded) == len(ours))
        return bool(recorded == ours)


def in_order(entries: list[Any]) -> list[Any]:
    """Topics by name or id, partitions by index, plain names: only that of aborted transactions has a meaning."""
    if entries and isinstance(entries[0], dict) and "firstOffset" in entries[0]:
        return entries
    if all(isinstance(entry, int) for entry in entries) or all(isinstance(entry, str) for entry in entries):
        return sorted(entries)
    for key in ORDERED_BY:
        if entries and all(isinstance(entry, dict) and key in entry for entry in entries):
            return sorted(entries, key=lambda entry: str(entry[key]))
    return entries
