"""Share groups in transcripts: a recorded life plays again with equal answers, and the grammar reads what it writes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rejoin.coordinator.testing import running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.transcript.grammar.base import Scope
from rejoin.transcript.grammar.table import BY_REQUEST, PRODUCE
from rejoin.transcript.members import MemberContext
from rejoin.transcript.player import TranscriptError, play
from tests.coordinator.control.samples import parse
from tests.coordinator.testing.share_member import ACCEPT, GROUP, REJECT, RELEASE, TOPICS, ShareMember, configure

LETTERS = {"errors_deadletterqueue_topic_name": "dlq.jobs"}


async def recorded_life() -> str:
    """Three members with release, reject, lock expiry, the delivery limit, dead letters, and a coordinator away."""
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator, **LETTERS, share_record_lock_duration_ms="15000", share_delivery_count_limit="3")
        a, b, c = (ShareMember(coordinator, name) for name in "abc")
        for member in (a, b, c):
            await member.join()
        await coordinator.produce("jobs", 0, ["one", "two", "three", "four"])
        assert await a.fetch() == [(0, 3, 1)]
        assert await a.acknowledge(0, 0, ACCEPT) == ErrorCode.NONE
        assert await a.acknowledge(1, 1, REJECT) == ErrorCode.NONE
        assert await a.acknowledge(2, 2, RELEASE) == ErrorCode.NONE
        assert await b.fetch() == [(2, 2, 2)]
        await coordinator.advance(10_000)
        await coordinator.expire_lock(GROUP, "jobs", 0, 2)
        assert await c.fetch() == [(2, 2, 3)]
        await coordinator.advance(5_000)  # the lock of a runs out
        await coordinator.fail_persister(GROUP, error="INVALID_REQUEST")
        assert await c.acknowledge(2, 2, ACCEPT) != ErrorCode.NONE
        assert await b.fetch() == [(3, 3, 2)]
        assert await b.acknowledge(3, 3, ACCEPT) == ErrorCode.NONE
        await coordinator.advance(10_000)  # the third lock of record 2
        assert len(await coordinator.records("dlq.jobs")) == 2
        return await coordinator.transcript(claim="The life of three members.")


async def test_a_recorded_life_plays_again_with_equal_answers() -> None:
    text = await recorded_life()
    assert "not expressible" not in text
    assert play(text).text == text


async def test_commands_and_events_of_a_life_stand_in_its_transcript() -> None:
    lines = (await recorded_life()).splitlines()
    for line in (
        "a share-heartbeat names=jobs",
        f"group {GROUP}",
        "topic dlq.jobs 1",
        "a acknowledge jobs:0=1/reject",
        "expire-lock jobs:0=2",
        "fail-persister write INVALID_REQUEST 1",
        "b  ShareFetch -> jobs:0 2 (delivery 2)",
        f"{GROUP}  jobs:0 1 archived: rejected",
        f"{GROUP}  jobs:0 2 (delivery 2) lock of b ran out after 10000 ms",
        f"{GROUP}  jobs:0 3 lock of a ran out after 15000 ms",
        f"{GROUP}  jobs:0 2 (delivery 3) archived: delivered as often as the group allows",
        f"{GROUP}  jobs:0 2 (delivery 3) written to dlq.jobs",
    ):
        assert any(line == each or each.startswith(f"{line} ") for each in lines), line


async def recorded_transactions() -> str:
    """A member that reads committed records, and a producer that aborts one transaction and commits the next."""
    async with running(clock="virtual", topics=TOPICS, socket=False) as coordinator:
        await configure(coordinator, share_isolation_level="read_committed")
        a = ShareMember(coordinator, "a")
        await a.join()
        topic_id = (await coordinator.set_topic("jobs", 1)).topic_id
        opened = await coordinator.call(
            parse("InitProducerId", {"transactionalId": "x", "transactionTimeoutMs": 60_000})
        )

        async def produce(words: str, producer: Any, version: int = 13) -> None:
            state = f"producer={producer.producer_id} epoch={producer.producer_epoch}"
            request: Any
            request, _ = PRODUCE.read([*words.split(), *state.split()], scope())
            (topic,) = request.topic_data
            named = topic.model_copy(update={"name": "", "topic_id": topic_id})
            written = request.model_copy(update={"transactional_id": "x", "topic_data": (named,)})
            answer: Any = await coordinator.call(written, version)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

        async def end(producer: Any, *, committed: bool) -> Any:
            body = {"producerId": producer.producer_id, "producerEpoch": producer.producer_epoch}
            answer: Any = await coordinator.call(
                parse("EndTxn", {"transactionalId": "x", **body, "committed": committed})
            )
            assert answer.error_code == ErrorCode.NONE
            return answer

        await produce("jobs:0=2", opened)
        await produce("jobs:0=1 sequence=2", opened)
        await coordinator.produce("jobs", 0, ["one"])
        assert await a.fetch(0) == []
        await coordinator.advance(1_000)
        fetched, aborted = await asyncio.gather(a.fetch(5_000), end(opened, committed=False))
        assert fetched == [(3, 4, 1)]
        await produce("jobs:0=1", aborted)
        await end(aborted, committed=True)
        assert await a.fetch(0) == [(5, 6, 1)]
        return await coordinator.transcript(claim="Two transactions.")


async def test_recorded_transactions_play_again_with_equal_answers() -> None:
    text = await recorded_transactions()
    assert play(text).text == text
    for line in (
        "produce jobs:0=2 producer=0",
        "produce jobs:0=1 producer=0 sequence=2",
        "a  ShareFetch waits",
        "end 0 abort jobs:0 epoch=1",
        f"{GROUP}  jobs:0 0-2 archived: of an aborted transaction",
        "end 0 commit jobs:0 epoch=2",
        "a  ShareFetch -> jobs:0 5-6 (delivery 1)",
    ):
        assert line in text.splitlines(), line


T, U = "t".rjust(21, "0") + "A", "u".rjust(21, "0") + "A"
RUNS = [
    {"firstOffset": 0, "lastOffset": 4, "acknowledgeTypes": [1]},
    {"firstOffset": 5, "lastOffset": 7, "acknowledgeTypes": [2, 0, 9]},
    {"firstOffset": 8, "lastOffset": 8, "acknowledgeTypes": []},
]
FETCH = {
    "groupId": "g",
    "memberId": "a-1",
    "shareSessionEpoch": 0,
    "maxWaitMs": 500,
    "minBytes": 1,
    "maxBytes": 2**31 - 1,
    "maxRecords": 500,
    "batchSize": 500,
    "topics": [{"topicId": T, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": []}]}],
    "forgottenTopicsData": [],
}
FORGOTTEN = [{"topicId": U, "partitions": [0, 1]}]
ASKED = [{"topicId": T, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": RUNS}]}]
ACKNOWLEDGE = {"groupId": "g", "memberId": "a-1", "shareSessionEpoch": 0, "topics": ASKED}
HEARTBEAT = {"groupId": "g", "memberId": "a-1", "memberEpoch": 0, "subscribedTopicNames": ["t", "u"]}
CONFIGS = [
    {"name": "share.auto.offset.reset", "configOperation": 0, "value": "by_duration:PT1H"},
    {"name": "share.record.lock.duration.ms", "configOperation": 1, "value": None},
]
RESOURCE = {"resourceType": 32, "resourceName": "g", "configs": CONFIGS}
OFFSETS = [{"topicName": "t", "partitions": [{"partitionIndex": 1, "startOffset": 7}]}]

MARKED = [{"name": "t", "partitionIndexes": [0, 1]}, {"name": "u", "partitionIndexes": [0]}]
MARKER = {"producerId": 7, "producerEpoch": 3, "transactionResult": False, "topics": MARKED, "coordinatorEpoch": 0}


class NoMembers:
    """No member has an id."""

    def named(self, name: str) -> MemberContext:
        raise AssertionError(name)

    def name_of(self, member_id: str) -> None:
        return None


def scope() -> Scope:
    member = MemberContext(name="a", member_id="a-1")
    return Scope("g", member, NoMembers(), topic_ids={"t": T, "u": U})


@pytest.mark.parametrize(
    ("api", "body", "version", "words"),
    [
        ("ShareGroupHeartbeat", HEARTBEAT, 1, ["names=t+u"]),
        ("ShareGroupHeartbeat", HEARTBEAT | {"memberEpoch": -1, "rackId": "r"}, 1, ["epoch=-1", "names=t+u", "rack=r"]),
        ("ShareFetch", FETCH, 2, ["t:0"]),
        ("ShareFetch", FETCH | {"maxRecords": 7, "shareAcquireMode": 1}, 2, ["t:0", "records=7", "mode=records"]),
        ("ShareFetch", FETCH | {"isRenewAck": True, "maxWaitMs": 0}, 2, ["t:0", "wait=0", "renew=yes"]),
        (
            "ShareFetch",
            FETCH
            | {"topics": [], "shareSessionEpoch": 4, "forgottenTopicsData": [{"topicId": U, "partitions": [0, 1]}]},
            1,
            ["forget=u:0,1", "epoch=4", "v=1"],
        ),
        ("ShareAcknowledge", ACKNOWLEDGE, 2, ["t:0=0-4/accept,5-7/release+gap+9,8"]),
        ("ShareAcknowledge", ACKNOWLEDGE | {"memberId": "x", "topics": []}, 1, ["id=x", "v=1"]),
        ("AlterShareGroupOffsets", {"groupId": "g", "topics": OFFSETS}, 0, ["t:1=7"]),
        ("DeleteShareGroupOffsets", {"groupId": "g", "topics": [{"topicName": "t"}]}, 0, ["t"]),
        ("WriteTxnMarkers", {"markers": [MARKER]}, 1, ["7", "abort", "t:0", "t:1", "u:0", "epoch=3"]),
        ("DescribeShareGroupOffsets", {"groups": [{"groupId": "g", "topics": None}]}, 1, []),
        (
            "IncrementalAlterConfigs",
            {"resources": [RESOURCE], "validateOnly": False},
            1,
            ["share.auto.offset.reset=by_duration:PT1H", "share.record.lock.duration.ms"],
        ),
    ],
)
def test_the_grammar_reads_what_it_writes(api: str, body: dict[str, object], version: int, words: list[str]) -> None:
    request: Request = type(parse(api, body)).parse(json.dumps(body), version)
    command = BY_REQUEST[type(request)]
    assert command.write(request, version, scope()) == words
    assert command.read(words, scope()) == (request, version)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("a share-fetch t:0=0-x/accept", "expected offsets with how they are acknowledged"),
        ("a share-fetch t", "expected TOPIC:PARTITION"),
        ("a share-fetch u:0", "there is no topic 'u'; expected t"),
        ("a share-fetch t:0 mode=fast", "mode=: expected batch, records"),
        ("a acknowledge t:0=5/eaten", "expected gap, accept, release, reject, renew"),
        ("a acknowledge t:0=5/accept v=9", "ShareAcknowledge has versions"),
        ("a share-heartbeat names=t now", "cannot read 'now'"),
        ("a share-heartbeet", "is it share-heartbeat"),
        ("expire-lock t:0", "expected expire-lock t:0=4"),
        ("expire-lock t:0=4", "g has no lock on record 4 of t:0; locked: none"),
        ("fail-persister sing", "expected fail-persister initialize"),
        ("fail-persister write NONSENSE", "there is no error 'NONSENSE'"),
        ("fail-persister write -2", "expected -1 for all requests"),
        ("produce t:0=0", "expected 1 to"),
        ("produce t:0=1 producer=x", "producer=: "),
        ("end 7 t:0", "expected end PRODUCER commit"),
        ("end 7 abort t", "expected "),
        ("configs", "expected configs KEY=VALUE"),
    ],
)
def test_a_wrong_line_names_what_was_expected(command: str, problem: str) -> None:
    with pytest.raises(TranscriptError, match=problem) as found:
        play(f"topic t 1\n{command}\n")
    assert found.value.line.number == 2


def test_members_of_a_share_group_can_send_heartbeats_by_themselves() -> None:
    played = play("topic t 1\na share-heartbeat names=t\nbeating a\nadvance 60000\na share-heartbeat\n----\n")
    assert played.blocks[-1].got[-1] == "a  ShareGroupHeartbeat -> epoch 3"


def test_a_fetch_waits_for_records() -> None:
    text = "topic t 1\nquietly a share-heartbeat names=t\nquietly a share-heartbeat\nquietly advance 10\n\n"
    played = play(text + "configs share.auto.offset.reset=earliest\na share-fetch t:0\nproduce t:0=2\n")
    got = played.blocks[-1].got
    assert "a  ShareFetch waits" in got
    assert "a  ShareFetch -> t:0 0-1 (delivery 1)" in got
