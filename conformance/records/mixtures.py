"""Random sequences about records: batches of all kinds, right and wrong, topics of all settings, and how they are read.

Each topic has settings of its own, some of which change meanwhile.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Final

from conformance.participants.looks import BIG, MAX_TIMESTAMP, Looks
from conformance.participants.producer import batch
from conformance.player.random_play import RandomPlay, Table, random_script
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.player.script import Script
from rejoin.protocol.wire.records import DefaultRecord, write_records

PARTITIONS: Final = 2
TIME: Final = 1_000_000_000_000
"""Long before any recording, and any replay."""
HOUR_MS: Final = 3_600_000
LOG_APPEND_TIME, CONTROL, DELETE_HORIZON, UNKNOWN_CODEC = 8, 32, 64, 5
GZIP: Final = 1
CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.before.max.ms": str(HOUR_MS)},
    {"message.timestamp.after.max.ms": "0"},
    {"message.timestamp.before.max.ms": str(HOUR_MS), "message.timestamp.type": "LogAppendTime"},
    {"max.message.bytes": "200"},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete"},
    {"compression.type": "uncompressed"},
)
"""Settings with which a topic begins."""
CHANGES: Final[tuple[tuple[str, str | None], ...]] = (
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "CreateTime"),
    ("message.timestamp.after.max.ms", "1000"),
    ("message.timestamp.before.max.ms", str(HOUR_MS)),
    ("message.timestamp.before.max.ms", None),
    ("max.message.bytes", "150"),
    ("max.message.bytes", None),
    ("max.message.bytes", "-1"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete"),
    ("cleanup.policy", "sometimes"),
    ("compression.type", "uncompressed"),
    ("compression.type", "producer"),
    ("compression.type", "rar"),
    ("min.insync.replicas", "2"),
    ("min.insync.replicas", "1"),
    ("retention.ms", "-2"),
    ("no.such.setting", "1"),
)
"""Settings given meanwhile, right ones and wrong ones; None deletes a setting."""
LENGTH_END: Final = 12
"""A batch's length counts from here."""
APART_MS: Final = 3
"""Brokers stamp the next batch with another time."""
SETTLED_MS: Final = 150
"""After this a changed setting counts."""
FIRST_EPOCHS_WITH_REPLICA: Final = 3
EARLIEST_LOCAL, LATEST_TIERED = -4, -5


class RecordMixture(RandomPlay):
    """One random sequence, on a topic that begins with these settings."""

    length = 60

    def __init__(self, play: Play, configs: dict[str, str]) -> None:
        super().__init__(play)
        self._configs = configs
        self._looks = Looks(play)
        self._values = 0
        self._session: tuple[Any, int] | None = None

    async def begin(self) -> None:
        configs = self._configs.items()
        await self._configure([{"name": name, "configOperation": 0, "value": value} for name, value in configs])

    async def step(self) -> None:
        await self.pick(self.TABLE)(self)

    async def end(self) -> None:
        await self._looks.fetch(isolation=0)
        await self._looks.ends(isolation=0)
        await self._looks.ends(timestamp=MAX_TIMESTAMP)

    def _partition(self) -> int:
        return self.draw.randrange(PARTITIONS)

    # --- writing

    async def _produce(self) -> None:
        """Records that may well be taken, alone or in several batches of one request."""
        parts = {each: self._batch() for each in self.draw.sample(range(PARTITIONS), self.draw.randint(1, 2))}
        await self._send(parts, self.draw.choice((-1, -1, 1)))

    async def _produce_wrongly(self) -> None:
        draw = self.draw
        wrong: tuple[dict[str, Any], ...] = (
            {"crc": "invalid"},
            {"magic": 1},
            {"magic": 0},
            {"magic": 3},
            {"attributes": CONTROL},
            {"attributes": LOG_APPEND_TIME},
            {"attributes": DELETE_HORIZON},
            {"attributes": UNKNOWN_CODEC},
            {"attributes": GZIP},
            {"attributes": 128},
            {"lastOffsetDelta": 5},
            {"recordsCount": 3},
            {"recordsCount": 0},
            {"recordsCount": -1},
            {"baseOffset": 7},
            {"partitionLeaderEpoch": 4},
            {"batchLength": draw.choice((5, 14, 30, 38, 39, 48))},
            {"baseSequence": 0},
            {"producerEpoch": 3},
            {"maxTimestamp": TIME - 5},
            {"baseTimestamp": -1},
            {"baseTimestamp": -1, "maxTimestamp": -1},
            {"raw": ""},
            {"raw": base64.b64encode(b"\x00" * 20).decode()},
            {"recordsCount": 2, "lastOffsetDelta": 1},
        )
        over = draw.choice(wrong)
        times = {"baseTimestamp": TIME, "maxTimestamp": TIME}
        data = batch(-1, -1, -1, [self._value()], **({"attributes": 0} | times | over))
        match draw.randrange(6):
            case 0:
                data = data[: draw.randrange(1, len(data))]
            case 1:
                data += self._batch()
            case 2:
                data = b""
            case 3 if "batchLength" in over:
                data = data[: LENGTH_END + over["batchLength"]]
            case _:
                pass
        wanted = self._partition()
        right = {1 - wanted: self._batch()} if draw.random() < 0.3 else {}
        await self._send({wanted: data} | right, -1)

    async def _send(self, records: dict[int, bytes], acks: int) -> None:
        version = self.draw.choice((3, 5, 7, 8, 9, 11, 12, 13))
        name = {"topicId": self.play.topic_id} if version >= 13 else {"name": self.play.topic}
        data = [{"index": partition, "records": data} for partition, data in records.items()]
        body = {"transactionalId": None, "acks": acks, "timeoutMs": 1_000}
        await self.play.ask("p", "Produce", body | {"topicData": [name | {"partitionData": data}]}, version)
        await self.play.wait(APART_MS)

    def _value(self) -> str:
        self._values += 1
        return f"v{self._values}" * self.draw.choice((1, 1, 1, 30))

    def _batch(self) -> bytes:
        """One batch as clients make them: some have keys, headers, times that differ, a codec."""
        draw = self.draw
        now = self.play.now()
        first = draw.choice((TIME, TIME, TIME + draw.randrange(1_000), now, now - 2 * HOUR_MS, now + 2 * HOUR_MS))
        deltas = [draw.choice((0, 1, 5, -3)) for _ in range(draw.choice((1, 1, 2, 3)))]
        has_keys = draw.random() < 0.7
        records: list[Json] = [
            {
                "attributes": 0,
                "timestampDelta": delta,
                "offsetDelta": at,
                "key": f"k{draw.randrange(3)}" if has_keys else None,
                "value": draw.choice((self._value(), self._value(), None)),
                "headers": [{"key": "h", "value": draw.choice(("x", None))}] if draw.random() < 0.2 else [],
            }
            for at, delta in enumerate(deltas)
        ]
        over: dict[str, Any] = {"records": records, "baseTimestamp": first, "maxTimestamp": first + max(deltas)}
        over["attributes"] = 0
        if draw.random() < 0.2:
            over["attributes"] = GZIP
            over["compressed"] = base64.b64encode(gzip.compress(_plain(records), mtime=0)).decode()
        return batch(-1, -1, -1, [""] * len(records), **over)

    # --- reading

    async def _fetch(self) -> None:
        """From any offset, with limits that cut batches."""
        draw = self.draw
        version = draw.choice((4, 5, 7, 9, 10, 11, 12, 13, 15, 16, 17, 18))
        over: dict[str, Any] = {"maxBytes": draw.choice((BIG, 1, 200)), "minBytes": draw.choice((0, 1))}
        await self._looks.fetch(
            *draw.sample(range(PARTITIONS), draw.randint(1, 2)),
            isolation=draw.randrange(2),
            at=draw.choice((0, 0, 1, 2, 5, 12, 40, -1)),
            version=version,
            max_bytes=draw.choice((BIG, 1, 100)),
            **over,
        )

    async def _fetch_in_session(self) -> None:
        """The next fetch of a session, which may be a wrong one; or the first one."""
        draw = self.draw
        wanted = self._partition()
        over: dict[str, Any] = {"sessionId": 0, "sessionEpoch": 0}
        if self._session is not None:
            known, epoch = self._session
            over = {"sessionId": known, "sessionEpoch": draw.choice((epoch, epoch, epoch, epoch + 1, -1))}
            if draw.random() < 0.3:
                name = {"topicId": self.play.topic_id}
                over["forgottenTopicsData"] = [name | {"partitions": [1 - wanted]}]
        answer = await self._looks.fetch(wanted, at=draw.choice((0, 1, 3)), isolation=0, version=18, **over)
        if isinstance(answer, dict):
            is_alive = not answer["errorCode"] and answer["sessionId"]
            self._session = (answer["sessionId"], max(1, over["sessionEpoch"] + 1)) if is_alive else None

    async def _list(self) -> None:
        draw = self.draw
        now = self.play.now()
        times = (
            -1,
            -2,
            MAX_TIMESTAMP,
            EARLIEST_LOCAL,
            LATEST_TIERED,
            -6,
            TIME,
            TIME + 1,
            TIME + 500,
            now,
            0,
            now + 2**40,
        )
        await self._looks.ends(
            *draw.sample(range(PARTITIONS), draw.randint(1, 2)),
            isolation=draw.randrange(2),
            timestamp=draw.choice(times),
            version=draw.choice((1, 2, 4, 5, 6, 7, 8, 9, 10, 11)),
        )

    async def _epoch_end(self) -> None:
        known, wanted = self.draw.choice((-1, 0, 3)), self.draw.choice((0, 1, -1))
        partitions = [{"partition": self._partition(), "currentLeaderEpoch": known, "leaderEpoch": wanted}]
        body: Json = {"topics": [{"topic": self.play.topic, "partitions": partitions}]}
        version = self.draw.choice((2, 3, 4))
        body |= {"replicaId": -1} if version >= FIRST_EPOCHS_WITH_REPLICA else {}
        await self._looks.ask("OffsetForLeaderEpoch", body, version)

    # --- what changes a topic

    async def _delete(self) -> None:
        wanted = {"partitionIndex": self._partition(), "offset": self.draw.choice((0, 1, 3, -1, -2, 1_000))}
        topics = [{"name": self.play.topic, "partitions": [wanted]}]
        body = {"topics": topics, "timeoutMs": 5_000}
        await self._looks.ask("DeleteRecords", body, self.draw.choice((0, 1, 2)))

    async def _change(self) -> None:
        name, value = self.draw.choice(CHANGES)
        await self._configure([{"name": name, "configOperation": int(value is None), "value": value}])

    async def _configure(self, configs: list[Json]) -> None:
        resource = {"resourceType": 2, "resourceName": self.play.topic, "configs": configs}
        body = {"resources": [resource], "validateOnly": self.draw.random() < 0.1}
        await self._looks.ask("IncrementalAlterConfigs", body, self.draw.choice((0, 1)))
        await self.play.wait(SETTLED_MS)

    async def _describe(self) -> None:
        wanted = ["message.timestamp.type", "max.message.bytes", "cleanup.policy", "compression.type", "retention.ms"]
        resource = {"resourceType": 2, "resourceName": self.play.topic, "configurationKeys": wanted}
        body = {"resources": [resource], "includeSynonyms": False}
        await self._looks.ask("DescribeConfigs", body, self.draw.choice((1, 2)))

    TABLE: ClassVar[Table] = (
        (_produce, 12),
        (_produce_wrongly, 6),
        (_fetch, 8),
        (_fetch_in_session, 4),
        (_list, 8),
        (_epoch_end, 2),
        (_delete, 2),
        (_change, 3),
        (_describe, 1),
    )


def _plain(records: list[Json]) -> bytes:
    return write_records(
        DefaultRecord(
            each["offsetDelta"],
            each["timestampDelta"],
            None if each["key"] is None else each["key"].encode(),
            None if each["value"] is None else each["value"].encode(),
            tuple((h["key"], None if h["value"] is None else h["value"].encode()) for h in each["headers"]),
            0,
        )
        for each in records
    )


def record_mixtures(seeds: Iterable[int]) -> Iterator[Script]:
    """Scripts by seed."""
    for number in seeds:
        make = partial(RecordMixture, configs=CONFIGS[number % len(CONFIGS)])
        yield random_script(f"records-{number:03}", make, partitions=PARTITIONS)
