"""The journal of a proxy: lag, transactions, files that are put aside, and what never is in it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from rejoin.pipeline.kafka_cluster.broker_logs import LogTails
from rejoin.pipeline.tables.commits import commits
from rejoin.pipeline.why.sources import open_source
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.cluster.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from tests.coordinator.service.refusals.test_refused_requests import batch
from tests.proxy.lives import GROUP, Life, events_in, life
from tests.proxy.test_same_life import of_one

VALUE = b"the-value-of-a-record"
PASSWORD = b"the-password-of-a-user"
TRANSACTION_EVENTS = (
    "producer_id_initialized",
    "transaction_started",
    "partitions_added_to_txn",
    "transaction_prepared",
    "transaction_completed",
    "producer_fenced",
)


def produced(partition: int) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch(VALUE))
    topic = TopicProduceData(name="orders", partition_data=(data,))
    return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,))


def rows_of_commits(events: Any) -> list[dict[str, Any]]:
    table: Any = commits(events)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


async def fetch(client: Any, version: int, topic: FetchTopic) -> None:
    answer = await client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,)), version)
    assert VALUE in bytes(answer.responses[0].partitions[0].records)


async def test_ends_and_positions_of_fetch_give_the_lag_of_commits(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        member, client = await one.member(), await one.client()
        (topic,) = (await client.ask(MetadataRequest(topics=None))).topics
        await member.send_join()
        await of_one(one, member)
        for _ in range(3):
            await client.ask(produced(0), 9)
        partition = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1_000_000)
        await fetch(client, 12, FetchTopic(topic="orders", partitions=(partition,)))
        await member.commit({0: 1})
        await one.broker.advance(10_000)
        await client.ask(produced(0), 9)
        await fetch(client, 16, FetchTopic(topic_id=topic.topic_id, partitions=(partition,)))
        await member.commit({0: 2})
    events = events_in(one.seen)
    rows = sorted(rows_of_commits(events), key=lambda row: row["at_ms"])
    assert [(row["offset"], row["end_offset"], row["lag"]) for row in rows] == [(1, 3, 2), (2, 4, 2)]
    seen = [row for row in events.to_pylist() if row["event"] == "log_end_seen"]
    assert [(row["topic"], row["high_watermark"], row["offsets"][0]["offset"]) for row in seen] == [
        ("orders", 3, 1),
        ("orders", 4, 1),
    ]


async def transactions(one: Life) -> None:
    """One transaction is committed, another is ended by the next process with the transactional id."""
    client = await one.client()
    starting = InitProducerIdRequest(transactional_id="pay", transaction_timeout_ms=60_000)
    for committed in (True, None):
        producer = await client.ask(starting, 2)
        who: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        topics = (AddPartitionsToTxnTopic(name="orders", partitions=(0, 1)),)
        names = {f"v3_and_below_{name}": value for name, value in who.items()}
        adding = AddPartitionsToTxnRequest(v3_and_below_transactional_id="pay", v3_and_below_topics=topics, **names)
        await client.ask(adding, 3)
        await one.broker.advance(500)
        if committed is not None:
            ending = EndTxnRequest(transactional_id="pay", committed=committed, **who)
            await client.ask(ending, 3)
            await one.broker.advance(100)
    assert (await client.ask(starting, 2)).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    await one.broker.advance(100)
    await client.ask(starting, 2)
    await client.ask(EndTxnRequest(transactional_id="pay", committed=True, **who), 3)


async def test_transactions_are_those_of_the_coordinator(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        await transactions(one)
    columns = ("event", "transactional_id", "producer_id", "committed", "ended_by", "open_ms", "error")
    known, seen = (
        [
            tuple(row[name] for name in columns)
            for row in sorted(events_in(each).to_pylist(), key=lambda row: (row["at_ms"], row["seq"]))
            if row["event"] in TRANSACTION_EVENTS
        ]
        for each in (one.known, one.seen)
    )
    assert sorted(map(str, seen)) == sorted(map(str, known))


async def test_neither_records_nor_credentials_are_in_the_journal(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        client = await one.client()
        await client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        await client.ask(SaslAuthenticateRequest(auth_bytes=b"\0user\0" + PASSWORD))
        for _ in range(3):
            await client.ask(produced(0), 9)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
        await fetch(client, 12, FetchTopic(topic="orders", partitions=(partition,)))
    (file,) = one.seen.iterdir()
    text = file.read_bytes()
    assert b"FETCH" in text
    for secret in (VALUE, PASSWORD):
        assert secret not in text
        assert secret.hex().encode() not in text
        # Base64 in each of its three alignments.
        assert not any(_base64(secret, shift) in text for shift in range(3))


def _base64(secret: bytes, shift: int) -> bytes:
    whole = base64.b64encode(bytes(shift) + secret)
    return whole[4 * bool(shift) : -4]


async def test_a_topic_that_grows_is_seen_with_the_next_metadata(tmp_path: Path) -> None:
    async with life(tmp_path) as one:
        client = await one.client()
        for count in (4, 4, 7):
            if count == 7:
                growth = CreatePartitionsTopic(name="orders", count=count, assignments=None)
                await client.ask(CreatePartitionsRequest(topics=(growth,), timeout_ms=1_000, validate_only=False))
            await client.ask(MetadataRequest(topics=None))
            await one.broker.advance(1_000)
    grown = [row for row in events_in(one.seen).to_pylist() if row["event"] == "topic_grown"]
    assert [(row["topic"], row["previous_partition_count"], row["partition_count"]) for row in grown] == [
        ("orders", 4, 7)
    ]
    assert (grown[0]["confidence"], grown[0]["source"]) == ("inferred", "request-log")
    (file,) = one.seen.iterdir()
    assert file.read_text().count("METADATA") == 2


async def test_full_files_are_put_aside_and_each_has_the_names_of_topics(tmp_path: Path) -> None:
    async with life(tmp_path, file_bytes=4_000, most_files=3) as one:
        client, member = await one.client(), await one.modern("a" * 22)
        (topic,) = (await client.ask(MetadataRequest(topics=None))).topics
        tails = LogTails([one.seen / "kafka-request.log"])
        await member.beat(0)
        assert tails.read_on() == []
        for number in range(40):
            await one.broker.advance(1_000)
            partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=number, committed_metadata="")
            commit = OffsetCommitRequest(
                group_id=GROUP,
                generation_id_or_member_epoch=member.epoch,
                member_id=member.member_id,
                topics=(OffsetCommitRequestTopic(topic_id=topic.topic_id, partitions=(partition,)),),
            )
            await client.ask(commit, 10)
            if number == 5:
                # A folder that is still written is read as any other.
                story = open_source(one.seen).story(GROUP)
                assert story.status.state == "Stable"
                assert tails.read_on() == []
                assert [row["member_id"] for row in tails.events(GROUP) if row["event"] == "member_joined"] == [
                    "a" * 22
                ]
    files = sorted(one.seen.iterdir())
    assert len(files) == 4
    assert sum(file.stat().st_size for file in files) < 4 * 4_000
    rows = rows_of_commits(events_in(one.seen))
    assert max(row["offset"] for row in rows) == 39
    assert {row["topic"] for row in rows} == {"orders"}
