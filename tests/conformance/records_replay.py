"""Replays what a real broker was asked about records, step by step in virtual time, and compares every field.

The recordings (``tests/golden/records``) have batches field by field, so that they can be read and built again.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Millis, Token
from rejoin.coordinator.core.node import Node
from rejoin.protocol.message import Response
from rejoin.protocol.messages.topics.create_topics import CreatableTopicConfig, CreateTopicsRequest
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from rejoin.transcript.driver import START, NodeDriver
from tests import paths
from tests.coordinator.core.driver import Driver, topic

Json = dict[str, Any]

GOLDEN: Final = paths.GOLDEN / "records"
FIRST_ID: Final = 0x5EED0000
"""Ids are numbers that no other field has, as they are replaced by their names wherever they stand."""

EARLY_MS: Final = 30
LATE_MS: Final = 300

NOT_COMPARED: Final = {"throttleTimeMs", "errorMessage", "batchIndexErrorMessage"}
"""Texts are compared only for whether they are null."""

HEADER: Final = {
    "baseOffset": "base_offset",
    "batchLength": "batch_length",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "magic": "magic",
    "attributes": "attributes",
    "lastOffsetDelta": "last_offset_delta",
    "baseTimestamp": "base_timestamp",
    "maxTimestamp": "max_timestamp",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "recordsCount": "records_count",
}


def recordings() -> list[Path]:
    """Every recording."""
    return sorted(GOLDEN.glob("*/*.jsonl"))


def exchanged(path: Path) -> set[tuple[str, int]]:
    """The requests of a recording: API and version."""
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    return {(step["api"], step["version"]) for step in steps if "api" in step}


def is_offered(path: Path) -> bool:
    """Whether a node serves all that a recording asks for."""
    return all(api in BY_NAME for api, _ in exchanged(path))


class TimedDriver(Driver):
    """Remembers when each request was answered."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.replied_at: dict[Token, Millis] = {}

    def on_reply(self, token: Token, response: Response) -> None:
        super().on_reply(token, response)
        self.replied_at[token] = self.now


class Replay:
    """One recording, played against a node of its own."""

    def __init__(self, path: Path) -> None:
        header, *self.steps = [json.loads(line) for line in path.read_text().splitlines()]
        names = {field.alias for field in Settings.model_fields.values()}
        given = {name: value for name, value in header["settings"].items() if name in names}
        given |= {"emulator.records.per.second": None}
        self._ids = 0
        self.driver = TimedDriver(Node(Settings.model_validate(given), self._new_id))
        self._real: dict[str, Any] = {}
        """What stands here for each name in the recording."""
        self._names: dict[Any, str] = {}
        self.driver.see_cluster()
        for index in range(int(header["settings"]["offsets.topic.num.partitions"])):
            NodeDriver.elect(self.driver, offsets_partition(index))
        for name, wanted in header["topics"].items():
            self._create(name, wanted)

    def _new_id(self) -> str:
        self._ids += 1
        return f"{FIRST_ID + self._ids:032x}"

    def _create(self, name: str, wanted: Json) -> None:
        configs = tuple(CreatableTopicConfig(name=key, value=value) for key, value in wanted["configs"].items())
        created = topic(name, wanted["partitions"], configs=configs)
        self.driver.receive(name, CreateTopicsRequest(topics=(created,)), 7)
        response: Any = self.driver.replies.pop(name)
        self._name(f"id:{name}", response.topics[0].topic_id)

    def _name(self, name: str, real: Any) -> None:
        self._real[name] = real
        self._names[real] = name

    # --- playing

    def differences(self) -> list[str]:
        """In what the answers differ from the recorded ones."""
        for step in self.steps:
            if "do" in step:
                continue
            self.driver.elapse(START + int(step["sent"]) - self.driver.now)
            body = json.dumps(self._from_recording(step["request"]))
            request = BY_NAME[step["api"]].request.parse(body, step["version"])
            self.driver.receive(step["n"], request, step["version"])
            self._learn_names(step)
        self.driver.elapse(LATE_MS + 1_000)
        return [difference for step in self.steps if "do" not in step for difference in self._compare(step)]

    def _learn_names(self, step: Json) -> None:
        """Sessions and producer ids get their names from the answers, which have to come at once for that."""
        response = self.driver.replies.get(step["n"])
        if response is None or not isinstance(step["answer"], dict):
            return
        for key, prefix in (("sessionId", "session-"), ("producerId", "pid-")):
            name = step["answer"].get(key)
            if isinstance(name, str) and name.startswith(prefix) and name not in self._real:
                self._name(name, as_json(response, step["version"])[key])

    def _compare(self, step: Json) -> list[str]:
        response = self.driver.replies.get(step["n"])
        where = f"{step['n']} {step['api']} v{step['version']}"
        if response is None or step["answer"] is None:
            same = response is None and step["answer"] is None
            return [] if same else [f"{where}: Kafka {step['answer']!r}, not {response!r}"]
        found = self._to_recording(as_json(response, step["version"]))
        lines = [f"{where}{line}" for line in unlike(step["answer"], found, "")]
        early = self.driver.replied_at[step["n"]] - START - step["answered"]
        if not -LATE_MS <= early <= EARLY_MS:
            lines.append(f"{where}: answered {early:+} ms beside Kafka")
        return lines

    # --- between the recording and the node

    def _from_recording(self, value: Any) -> Any:
        match value:
            case {"batches": _} | {"raw": _}:
                return base64.b64encode(build(value)).decode()
            case dict():
                return {key: self._from_recording(each) for key, each in value.items()}
            case list():
                return [self._from_recording(each) for each in value]
            case str() if value.startswith(("T+", "T-")):
                return START + int(value[1:])
            case str():
                return self._real.get(value, value)
            case _:
                return value

    def _to_recording(self, value: Any) -> Any:
        match value:
            case dict():
                return {key: self._to_recording(each) for key, each in value.items()}
            case list():
                return [self._to_recording(each) for each in value]
            case str() | int() if not isinstance(value, bool):
                return self._names.get(value, value) if value not in (0, -1, 1) else value
            case _:
                return value


def as_json(response: Response, version: int) -> Json:
    """A response as JSON of its version."""
    made: Json = json.loads(response.to_json(version))
    return made


def unlike(kafka: Any, ours: Any, path: str) -> list[str]:
    """The fields in which two answers differ."""
    if isinstance(kafka, dict) and "batches" in kafka:
        return _unlike_bytes(kafka, base64.b64decode(ours or ""), path)
    if isinstance(kafka, dict) and isinstance(ours, dict):
        if not kafka:
            # A tagged struct that was absent.
            return [] if all(each in (-1, ()) for each in ours.values()) else [f"{path}: absent in Kafka, not {ours!r}"]
        lines = [f"{path}.{key}: only in Kafka's answer" for key in kafka.keys() - ours.keys()]
        lines += [f"{path}.{key}: only in ours" for key in ours.keys() - kafka.keys()]
        for key in kafka.keys() & ours.keys():
            if key not in NOT_COMPARED:
                lines += unlike(kafka[key], ours[key], f"{path}.{key}")
            elif (kafka[key] is None) != (ours[key] is None):
                lines.append(f"{path}.{key}: Kafka {kafka[key]!r}, not {ours[key]!r}")
        return lines
    if isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        return [line for index, each in enumerate(kafka) for line in unlike(each, ours[index], f"{path}.{index}")]
    if isinstance(kafka, str) and kafka.startswith(("T+", "T-")) and isinstance(ours, int):
        return [] if abs(START + int(kafka[1:]) - ours) <= LATE_MS else [f"{path}: Kafka {kafka}, not {ours - START:+}"]
    return [] if kafka == ours else [f"{path}: Kafka {kafka!r}, not {ours!r}"]


def _unlike_bytes(kafka: Json, ours: bytes, path: str) -> list[str]:
    """Batches are equal byte by byte; what is left of a cut batch, which may hold a time, by its length."""
    whole = build({"batches": kafka["batches"]})
    rest = base64.b64decode(kafka.get("rest", ""))
    if ours[: len(whole)] == whole and len(ours) == len(whole) + len(rest):
        return []
    return [f"{path}: Kafka {len(whole)} bytes of batches and {len(rest)} more, not {len(ours)}, or other bytes"]


# --- batches, field by field


def build(records: Json) -> bytes:
    """The bytes of recorded batches. Every field is as it was sent, also wrong ones."""
    if "raw" in records:
        return base64.b64decode(records["raw"])
    built = b"".join(_build_batch(batch) for batch in records["batches"])
    return built + base64.b64decode(records.get("rest", ""))


def _build_batch(batch: Json) -> bytes:
    fields = {ours: batch[theirs] for theirs, ours in HEADER.items()}
    if "compressed" in batch:
        data = base64.b64decode(batch["compressed"])
    elif "raw" in batch:
        data = base64.b64decode(batch["raw"])
    else:
        data = write_records(_record_from(record) for record in batch["records"])
    header = BatchHeader(crc=0, **fields)
    made = bytearray(sealed(header, data))
    made[8:12] = header.batch_length.to_bytes(4, "big", signed=True)
    if batch["crc"] == "invalid":
        made[17] ^= 1
    return bytes(made)


def _record_from(record: Json) -> DefaultRecord:
    return DefaultRecord(
        record["offsetDelta"],
        record["timestampDelta"],
        _bytes_from(record["key"]),
        _bytes_from(record["value"]),
        tuple((header["key"], _bytes_from(header["value"])) for header in record["headers"]),
        record["attributes"],
    )


def _bytes_from(value: Any) -> bytes | None:
    match value:
        case {"base64": text}:
            return base64.b64decode(text)
        case {"repeat": text, "times": times}:
            return str(text).encode() * int(times)
        case str():
            return value.encode()
        case _:
            return None
