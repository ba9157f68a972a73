"""The records of topics: what a test writes to them, and what is in them."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, cast

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.errors import InvalidArgument, NotFound, NotPossible, RequestFailed, unknown
from rejoin.coordinator.control.fault_injection.bodies import Body, as_tuple, one_level_up
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.core.inputs import Context, Millis, RecordsWritten
from rejoin.coordinator.core.views import LogSlice, TopicView
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rejoin.protocol.partitioner import partition_of_key
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.synthetic import synthetic_record
from rejoin.protocol.validation import shown
from rejoin.protocol.wire.record_batch import HEADER_SIZE, MAGIC, BatchHeader, parse_header, sealed, size_at
from rejoin.protocol.wire.records import DefaultRecord, read_batch, write_records

PRODUCER: Final = "admin"
MOST_RECORDS: Final = 100_000
"""As many records are shown at once unless fewer are asked for."""
MOST_WRITTEN: Final = 1_000_000
"""As many records are written at once, in all partitions together."""
_PRODUCE_BY_NAME: Final = 12
"""The newest Produce that names topics."""
_BATCH_RECORDS: Final = 10_000
_READ_BYTES: Final = 1 << 20

Encoding = Literal["utf-8", "base64"]
Headers = tuple[tuple[str, str | None], ...]

_PAIR: Final = 2


def _pairs(value: object) -> object:
    """Headers by name, or pairs of name and value, as pairs."""
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value


class NewRecord(Body):
    """A record to be written."""

    key: str | None = None
    value: str | None = Field(default=None, description="null is a tombstone")
    headers: Annotated[Headers, BeforeValidator(_pairs)] = Field(
        default=(), description="values by name, or pairs of name and value"
    )
    timestamp: int | None = Field(default=None, ge=0, description="ms since 1970; the time of the node unless given")


def _record(value: object) -> object:
    """A value, or a pair of key and value, as the record that it stands for."""
    if value is None or isinstance(value, str):
        return {"value": value}
    if isinstance(value, (list, tuple)) and len(value) == _PAIR:
        return {"key": value[0], "value": value[1]}
    if not isinstance(value, (dict, NewRecord)):
        raise ValueError("expected a value, a pair of key and value, or key, value, headers and timestamp by name")
    return value


def _number_or_records(value: object, check: ValidatorFunctionWrapHandler) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, list, tuple)):
        raise ValueError(f"expected how many records, or a list of them, not {shown(value)}")
    return one_level_up(value, check)


def _kind_of_records(value: object) -> str:
    return "list" if isinstance(value, (list, tuple)) else "number"


_ValueOrPair = str | tuple[str | None, str | None] | None
Written = Annotated[NewRecord, BeforeValidator(_record, json_schema_input_type=NewRecord | _ValueOrPair)]
CountOrRecords = Annotated[
    Annotated[int, Field(ge=0, le=10**15), Tag("number")]
    | Annotated[tuple[Written, ...], BeforeValidator(as_tuple), Tag("list")],
    Discriminator(_kind_of_records),
    WrapValidator(_number_or_records),
]


class NewRecords(Body):
    """Records to be written."""

    topic: str = Field(description="the topic's name")
    partition: int | None = Field(
        default=None,
        ge=0,
        description="one partition; unless given, all of them, or for a list the partitions that its keys choose",
    )
    records: CountOrRecords = Field(
        description="a number of records for each partition, with values such as orders-0@17 (partition and offset); "
        "or a list of records: values, pairs of key and value, or objects"
    )
    keys: bool = Field(
        default=False, description="with a number of records: give them keys such as key-17, as synthetic topics do"
    )
    encoding: Encoding = Field(default="utf-8", description="encoding of keys, values and headers")

    @model_validator(mode="after")
    def _keys_of_a_number(self) -> Self:
        if self.keys and isinstance(self.records, tuple):
            raise ValueError("keys needs a number of records; records in a list bring their own keys")
        return self


class RecordsQuery(Body):
    """Which records of a topic."""

    topic: str = Field(description="the topic's name")
    partition: int | None = Field(default=None, ge=0, description="one partition; all of them unless given")
    offset: int = Field(default=0, ge=0, description="first offset to read, in each partition")
    limit: int | None = Field(
        default=None,
        ge=0,
        description=f"most records to answer with; unless given, all, where these are at most {MOST_RECORDS}",
    )
    encoding: Encoding = Field(
        default="utf-8",
        description="encoding of keys, values and headers in the answer; bytes that are not UTF-8 are answered as "
        "key_base64, value_base64 or headers_base64",
    )


class StoredRecord(NamedTuple):
    """A record as it is in its log."""

    topic: str
    partition: int
    offset: int
    timestamp: Millis
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    """As most clients give them: pairs of name and value."""

    def shown(self, encoding: Encoding) -> dict[str, Any]:
        """The record as JSON has it. What is not UTF-8 has another name there, so that nothing takes it for text."""
        shown: dict[str, Any] = {**self._asdict()}
        for name in ("key", "value", "headers"):
            data = shown.pop(name)
            try:
                shown[name] = _shown(data, encoding)
            except UnicodeDecodeError:
                shown[f"{name}_base64"] = _shown(data, "base64")
        return shown


def _shown(data: Any, encoding: Encoding) -> Any:
    """A key, a value, or headers, as JSON has them. Raises UnicodeDecodeError."""
    if isinstance(data, list):
        return [[name, _shown(value, encoding)] for name, value in data]
    if data is None or encoding == "utf-8":
        return data if data is None else data.decode()
    return base64.b64encode(data).decode("ascii")


class TopicRecords:
    """Writes records to topics as a producer does, and reads them past all requests."""

    def __init__(self, runtime: ControlledRuntime, clock: VirtualClock) -> None:
        self._runtime = runtime
        self._clock = clock

    # --- writing

    async def produce(self, produced: NewRecords) -> dict[str, Any]:
        """Write records to a topic; where its logs are synthetic, only move their ends on."""
        self._clock.catch_up()
        topic = self._topic(produced.topic, produced.partition)
        partitions = _partitions(topic, produced.partition)
        if isinstance(produced.records, tuple):
            if topic.records_per_second is not None:
                detail = f"the logs of {topic.topic!r} are synthetic; give a number of records, or make a real topic"
                raise NotPossible("synthetic-topic", detail)
            await self._append_all(topic, produced.partition, produced.records, produced.encoding)
        elif topic.records_per_second is None:
            await self._append_numbered(topic, partitions, produced.records, keys=produced.keys)
        else:
            for partition in partitions:
                self._runtime.hand_in(RecordsWritten(topic.topic, partition, produced.records))
            await self._runtime.topics_stored()
        return self._topic(produced.topic, None).model_dump(mode="json", by_alias=False)

    async def _append_numbered(self, topic: TopicView, partitions: tuple[int, ...], number: int, *, keys: bool) -> None:
        """Write so many records to each partition; a value names its record, as ``orders-0@17`` (synthetic logs' form).

        The number behind ``@`` is the offset, unless a client writes to the partition at the same time.
        """
        if number * len(partitions) > MOST_WRITTEN:
            expected = f"expected at most {MOST_WRITTEN:,} in all partitions together, as the log of a topic keeps them"
            detail = f"records: {expected}, not {number:,} in each of {len(partitions)}"
            raise InvalidArgument("records", expected, number, detail)
        ends = topic.end_offsets
        for first in range(0, number, _BATCH_RECORDS):
            now, some = self._clock.now(), range(first, min(first + _BATCH_RECORDS, number))
            batches = {}
            for partition in partitions:
                end = ends[partition] or 0
                records = [_numbered(topic.topic, partition, end + each, keys=keys) for each in some]
                batches[partition] = self._batch(records, now)
            await self._append(topic.topic, batches)
            await asyncio.sleep(0)  # clients are served meanwhile

    async def _append_all(
        self, topic: TopicView, partition: int | None, records: Sequence[NewRecord], encoding: Encoding
    ) -> None:
        """Write records to one partition, or each to that of its key; those without keys go round."""
        now, keyless = self._clock.now(), count()
        wanted: dict[int, list[DefaultRecord]] = {}
        for number, record in enumerate(records):
            key = _bytes(record.key, encoding, f"records.{number}.key")
            at = partition
            if at is None:
                at = next(keyless) % topic.partitions if key is None else partition_of_key(key, topic.partitions)
            headers = tuple(
                (name, _bytes(value, encoding, f"records.{number}.headers")) for name, value in record.headers
            )
            value = _bytes(record.value, encoding, f"records.{number}.value")
            since = 0 if record.timestamp is None else record.timestamp - now
            wanted.setdefault(at, []).append(DefaultRecord(0, since, key, value, headers))
        for at, some in wanted.items():
            for first in range(0, len(some), _BATCH_RECORDS):
                await self._append(topic.topic, {at: self._batch(some[first : first + _BATCH_RECORDS], now)})

    @staticmethod
    def _batch(records: list[DefaultRecord], now: Millis) -> bytes:
        """A batch of these records, whose timestamps count from now."""
        numbered = [record._replace(offset_delta=number) for number, record in enumerate(records)]
        newest = now + max(record.timestamp_delta for record in records)
        header = BatchHeader(0, 0, -1, MAGIC, 0, 0, len(records) - 1, now, newest, -1, -1, -1, len(records))
        return sealed(header, write_records(numbered))

    async def _append(self, topic: str, batches: dict[int, bytes]) -> None:
        by_leader: dict[int, dict[int, bytes]] = {}
        for partition, batch in batches.items():
            leader = self._runtime.target_of(_request(topic, {partition: batch}), _PRODUCE_BY_NAME)
            by_leader.setdefault(leader.broker.node_id, {})[partition] = batch
        for led in by_leader.values():
            await self._append_at_leader(topic, led)

    async def _append_at_leader(self, topic: str, batches: dict[int, bytes]) -> None:
        answer = await self._runtime.submit(
            _request(topic, batches), Context(_PRODUCE_BY_NAME, PRODUCER, by_operator=True)
        ).answer()
        if answer is None:
            raise RequestFailed("ProduceRequest failed")
        for result in cast(ProduceResponse, answer).responses[0].partition_responses:
            if result.error_code is not ErrorCode.NONE:
                message = f": {result.error_message}" if result.error_message else ""
                detail = f"partition {result.index} of {topic!r}: {result.error_code.name}{message}"
                raise NotPossible("records-refused", detail)

    # --- reading

    def read(self, wanted: RecordsQuery) -> list[StoredRecord]:
        """The records of a topic, by partition and offset, without those of control batches."""
        self._clock.catch_up()
        topic = self._topic(wanted.topic, wanted.partition, for_reading=True)
        partitions = _partitions(topic, wanted.partition)
        if wanted.limit is None:
            there = sum(max((topic.end_offsets[each] or 0) - wanted.offset, 0) for each in partitions)
            if there > MOST_RECORDS:
                detail = (
                    f"{wanted.topic!r} has {there} records, and one answer has at most {MOST_RECORDS}; give a limit, "
                    "an offset or a partition"
                )
                raise NotPossible("too-many-records", detail)
        left = MOST_RECORDS if wanted.limit is None else wanted.limit
        found: list[StoredRecord] = []
        for partition in partitions:
            for record in self._records(wanted.topic, partition, wanted.offset):
                if len(found) == left:
                    return found
                found.append(record)
        return found

    def _records(self, topic: str, partition: int, offset: int) -> Iterator[StoredRecord]:
        while True:
            slice_ = self._runtime.node.read_log(topic, partition, offset, _READ_BYTES, self._clock.now())
            if isinstance(slice_, ErrorCode):
                detail = f"partition {partition} of {topic!r} cannot be read at this node: {slice_.name}"
                raise NotPossible("not-readable", detail)
            offset = max(offset, slice_.log_start_offset)
            if offset >= slice_.high_watermark:
                return
            begin = offset
            for header, batch in _whole_batches(slice_):
                if not header.is_control:
                    yield from _records_of(topic, partition, header, batch, offset)
                offset = max(offset, header.last_offset + 1)
            if offset == begin:
                return  # compaction has removed the last records

    def _topic(self, name: str, partition: int | None, *, for_reading: bool = False) -> TopicView:
        """A topic that has this partition."""
        topics = {topic.topic: topic for topic in self._runtime.node.describe_topics(self._clock.now())}
        topic = self._offsets_topic() if for_reading and name == OFFSETS_TOPIC else topics.get(name)
        if topic is None:
            raise unknown("topic", name, list(topics))
        if partition is not None and partition >= topic.partitions:
            detail = f"topic {name!r} has no partition {partition}; expected 0 to {topic.partitions - 1}"
            raise NotFound("unknown-partition", detail)
        return topic

    def _offsets_topic(self) -> TopicView:
        """Records that the coordinator writes, as a topic."""
        node, now = self._runtime.node, self._clock.now()
        count = node.settings.offsets_topic_num_partitions
        logs = [node.read_log(OFFSETS_TOPIC, partition, 0, 0, now) for partition in range(count)]
        ends = [log.high_watermark if isinstance(log, LogSlice) else None for log in logs]
        return TopicView(topic=OFFSETS_TOPIC, topic_id="", partitions=count, records_per_second=None, end_offsets=ends)


def _numbered(topic: str, partition: int, offset: int, *, keys: bool) -> DefaultRecord:
    """The record of an offset, distinct among all records that are written by number."""
    key, value = synthetic_record(topic, partition, offset)
    return DefaultRecord(0, 0, key if keys else None, value)


def _request(topic: str, batches: dict[int, bytes]) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=partition, records=batch) for partition, batch in batches.items())
    return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(TopicProduceData(name=topic, partition_data=data),))


def _partitions(topic: TopicView, partition: int | None) -> tuple[int, ...]:
    return tuple(range(topic.partitions)) if partition is None else (partition,)


def _bytes(text: str | None, encoding: Encoding, where: str) -> bytes | None:
    if text is None or encoding == "utf-8":
        return None if text is None else text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        expected = "expected base64 in the standard alphabet with padding"
        raise InvalidArgument(where, expected, text, f"{where}: {expected}: {problem}") from None


def _whole_batches(found: LogSlice) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of a reading; the last may be cut and is left out then."""
    data, at = memoryview(found.batches), 0
    while len(data) - at >= HEADER_SIZE and size_at(data, at) <= len(data) - at:
        header = parse_header(data, at)
        yield header, data[at : at + header.size]
        at += header.size


def _records_of(
    topic: str, partition: int, header: BatchHeader, batch: memoryview, first: int
) -> Iterator[StoredRecord]:
    """The records of a batch from an offset on."""
    for record in read_batch(batch):
        offset = header.base_offset + record.offset_delta
        if offset >= first:
            timestamp = header.base_timestamp + record.timestamp_delta
            if header.has_log_append_time:
                timestamp = header.max_timestamp
            yield StoredRecord(topic, partition, offset, timestamp, record.key, record.value, list(record.headers))
