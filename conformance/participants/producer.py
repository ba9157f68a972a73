"""Clients of scripts: producers that remember their id, epoch and sequences, consumers, administrators."""

from __future__ import annotations

from typing import Any, Final

from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play
from rejoin.conform.records.described_records import batch_of
from rejoin.coordinator.core.transactions.log import transaction_batch
from rejoin.protocol.records.transaction_state import TransactionLogValue

TIME: Final = 1_700_000_000_000
HEADER_AND_RECORD: Final = 61
TRANSACTIONAL: Final = 16
FIRST_WITH_IDS: Final = 13
FIRST_OFFSETS_WITH_IDS: Final = 6
BIG: Final = 1_048_576
VERSION_1: Final = {"Produce": 11, "EndTxn": 4, "TxnOffsetCommit": 4}
"""Versions that a client without transaction version 2 sends."""
VERSION_2: Final = {"Produce": 13, "EndTxn": 5, "TxnOffsetCommit": 6}


def batch(producer_id: int, epoch: int, sequence: int, values: list[str], **over: Any) -> bytes:
    """A batch with these records, transactional unless ``over`` says otherwise."""
    records: list[Json] = [
        {"attributes": 0, "timestampDelta": 0, "offsetDelta": at, "key": None, "value": value, "headers": []}
        for at, value in enumerate(values)
    ]
    described: Json = {
        "baseOffset": 0,
        "batchLength": 0,
        "partitionLeaderEpoch": -1,
        "magic": 2,
        "crc": "valid",
        "attributes": TRANSACTIONAL,
        "lastOffsetDelta": len(values) - 1,
        "baseTimestamp": TIME,
        "maxTimestamp": TIME,
        "producerId": producer_id,
        "producerEpoch": epoch,
        "baseSequence": sequence,
        "recordsCount": len(values),
        "records": records,
    } | over
    length = len(batch_of(described)) - 12
    return batch_of(described | {"batchLength": over.get("batchLength", length)})


def transaction_of(transactional_id: str, producer_id: int, epoch: int, now: int) -> bytes:
    """The record of a transactional id in the log of its coordinator: nothing is open."""
    value = TransactionLogValue(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_timeout_ms=60_000,
        transaction_status=0,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=now,
        transaction_start_timestamp_ms=-1,
    )
    return transaction_batch(transactional_id, value, 1, 0, -1, now)[0]


class Producer:
    """A producer by its client id. It believes what it was last answered; ``version`` is that of its transactions."""

    def __init__(self, play: Play, name: str = "p", transactional_id: str | None = "", version: int = 2) -> None:
        self.play = play
        self.name = name
        self.transactional_id = play.transactional_id if transactional_id == "" else transactional_id
        self.versions = VERSION_1 if version < 2 else VERSION_2
        self.version = version
        self.broker = 1
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[int, int] = {}
        self.before = (-1, -1)
        """Producer id and epoch at the last end of a transaction."""
        self.timestamp = TIME
        self._values = 0

    async def ask(self, api: str, body: Json, version: int | None = None, broker: int | None = None) -> Any:
        return await self.play.ask(self.name, api, body, version, broker=broker or self.broker)

    # --- epochs

    async def init(
        self, expected: tuple[int, int] | None = None, version: int = 5, timeout: int = 60_000, **over: Any
    ) -> Any:
        """InitProducerId, with the id and epoch of before if ``expected`` says so."""
        body: Json = {"transactionalId": self.transactional_id, "transactionTimeoutMs": timeout}
        if version >= 3:
            body["producerId"], body["producerEpoch"] = expected or (-1, -1)
        answer = await self.ask("InitProducerId", body | over, version)
        if answer != "closed" and answer["errorCode"] == 0:
            self.producer_id, self.epoch = answer["producerId"], answer["producerEpoch"]
            self.sequences.clear()
        return answer

    @property
    def known(self) -> tuple[int, int]:
        """Current producer id and epoch, for InitProducerId to expect."""
        return self.producer_id, self.epoch

    async def end(self, committed: bool = True, version: int | None = None, *, waits: bool = True, **over: Any) -> Any:
        """EndTxn; the next request finds the transaction complete, if it ``waits``."""
        version = self.versions["EndTxn"] if version is None else version
        body = {"transactionalId": self.transactional_id, "committed": committed, **self._identity()} | over
        self.before = self.known
        answer = await self.ask("EndTxn", body, version)
        if answer["errorCode"] == 0:
            if version >= 5:
                self.producer_id, self.epoch = answer["producerId"], answer["producerEpoch"]
                self.sequences.clear()
            if waits:
                await self.play.until_complete(self.transactional_id, broker=self.broker)
        return answer

    async def commit(self, version: int | None = None, **over: Any) -> Any:
        return await self.end(True, version, **over)

    async def abort(self, version: int | None = None, **over: Any) -> Any:
        return await self.end(False, version, **over)

    def _identity(self) -> Json:
        return {"producerId": self.producer_id, "producerEpoch": self.epoch}

    # --- records

    async def produce(
        self,
        partition: int = 0,
        count: int = 1,
        version: int | None = None,
        *,
        sequence: int | None = None,
        epoch: int | None = None,
        producer_id: int | None = None,
        transactional_id: str | None = "",
        acks: int = -1,
        topic: str | None = None,
        broker: int | None = None,
        **over: Any,
    ) -> Any:
        """One batch for a partition of the script's topic."""
        version = self.versions["Produce"] if version is None else version
        known = self.sequences.get(partition, 0)
        over |= {"sequence": sequence, "epoch": epoch, "producer_id": producer_id}
        data = self.batch(partition, count, **over)
        body = self.produce_body({partition: data}, version, transactional_id, acks, topic)
        answer = await self.play.ask(
            self.name, "Produce", body, version, broker=broker or self.broker, is_answered=acks != 0
        )
        if isinstance(answer, dict) and not answer["responses"][0]["partitionResponses"][0]["errorCode"]:
            self.sequences[partition] = (known if sequence is None else sequence) + count
        return answer

    def batch(
        self,
        partition: int,
        count: int = 1,
        *,
        sequence: int | None = None,
        epoch: int | None = None,
        producer_id: int | None = None,
        **over: Any,
    ) -> bytes:
        """The next batch for a partition, but for what is said otherwise."""
        values = [f"{self.name}{self._values + at}" for at in range(count)]
        self._values += count
        times = {"baseTimestamp": self.timestamp, "maxTimestamp": self.timestamp}
        return batch(
            self.producer_id if producer_id is None else producer_id,
            self.epoch if epoch is None else epoch,
            self.sequences.get(partition, 0) if sequence is None else sequence,
            values,
            **(times | over),
        )

    def produce_body(
        self,
        records: dict[int, bytes],
        version: int,
        transactional_id: str | None = "",
        acks: int = -1,
        topic: str | None = None,
    ) -> Json:
        topics = [{"index": partition, "records": data} for partition, data in records.items()]
        return {
            "transactionalId": self.transactional_id if transactional_id == "" else transactional_id,
            "acks": acks,
            "timeoutMs": 15_000,
            "topicData": [self._topic(version >= FIRST_WITH_IDS, topic) | {"partitionData": topics}],
        }

    def _topic(self, by_id: bool, topic: str | None = None) -> Json:
        name = topic or self.play.topic
        return {"topicId": self.play.topic_ids.get(name, "A" * 21 + "Q")} if by_id else {"name": name}

    # --- partitions and offsets

    async def add(self, *partitions: int, version: int = 3, topic: str | None = None, **over: Any) -> Any:
        """AddPartitionsToTxn as a client sends it (0 to 3)."""
        body = {
            "v3AndBelowTransactionalId": self.transactional_id,
            "v3AndBelowProducerId": self.producer_id,
            "v3AndBelowProducerEpoch": self.epoch,
            "v3AndBelowTopics": [{"name": topic or self.play.topic, "partitions": list(partitions)}],
        } | over
        return await self.ask("AddPartitionsToTxn", body, version)

    async def add_as_broker(self, *partitions: int, verify: bool = False, version: int = 5, **over: Any) -> Any:
        """AddPartitionsToTxn as brokers send it to each other (from 4)."""
        transaction: Json = {
            "transactionalId": self.transactional_id,
            **self._identity(),
            "verifyOnly": verify,
            "topics": [{"name": self.play.topic, "partitions": list(partitions)}],
        }
        return await self.ask("AddPartitionsToTxn", {"transactions": [transaction | over]}, version)

    async def add_offsets(self, version: int = 4, group: str | None = None, **over: Any) -> Any:
        body = {"transactionalId": self.transactional_id, **self._identity(), "groupId": group or self.play.group}
        return await self.ask("AddOffsetsToTxn", body | over, version)

    async def offsets(
        self, offsets: dict[int, int] | None = None, version: int | None = None, topic: str | None = None, **over: Any
    ) -> Any:
        """TxnOffsetCommit. Fields that a version has not are left out."""
        version = self.versions["TxnOffsetCommit"] if version is None else version
        metadata = over.pop("metadata", "")
        partitions = [
            {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": metadata}
            for partition, offset in (offsets or {0: 5}).items()
        ]
        member = {"generationIdOrMemberEpoch": -1, "memberId": "", "groupInstanceId": None} if version >= 3 else {}
        body = {
            "transactionalId": self.transactional_id,
            "groupId": self.play.group,
            **self._identity(),
            **member,
            "topics": [self._topic(version >= FIRST_OFFSETS_WITH_IDS, topic) | {"partitions": partitions}],
        } | over
        return await self.ask("TxnOffsetCommit", body, version)

    async def offsets_of(self, topic: str, offsets: dict[int, int], version: int = 5, **over: Any) -> Any:
        """TxnOffsetCommit for another topic than the script's own."""
        return await self.offsets(offsets, version, topic, **over)

    async def begin(self, *partitions: int) -> None:
        """A first record in each partition, as a client of its version writes it."""
        for partition in partitions or (0,):
            if self.version < 2:
                await self.add(partition)
            await self.produce(partition)
