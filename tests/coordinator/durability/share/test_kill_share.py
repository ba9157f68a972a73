"""kill -9 under ``rejoin.ShareConsumer``: each record at least once, none too often, each poison record kept.

``REJOIN_KILL_SHARE_ROUNDS`` says how often, and for PostgreSQL too; ``REJOIN_KILL_SEED`` draws other moments.
"""

from __future__ import annotations

import base64
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from rejoin.protocol.wire.records import read_batch
from tests.coordinator.core.partitions.real_topic import batch
from tests.coordinator.durability.service import PATIENCE, Service, stop_all
from tests.coordinator.durability.share.ledger import GROUP, TOPIC, Caller, Ledger, LedgerMember, insist

GIVEN = os.environ.get("REJOIN_KILL_SHARE_ROUNDS")
ROUNDS = int(GIVEN or "3")
SEED = int(os.environ.get("REJOIN_KILL_SEED", "1"))
LETTERS: Final = "dlq.jobs"
LIMIT: Final = 3
POISON: Final = 10
RECORDS_A_ROUND: Final = 60
SETTINGS: Final = {
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "broker.session.timeout.ms": "1000",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "300",
}
ALREADY_THERE: Final = 36
"""TOPIC_ALREADY_EXISTS."""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"] if GIVEN else ["sqlite"])
def test_every_record_is_accepted_or_a_dead_letter(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    dice = random.Random(SEED)
    store = ["--data", str(tmp_path / "data")]
    if kind == "postgres":
        store = ["--store", request.getfixturevalue("postgres")]
    service = Service(tmp_path, store, SETTINGS, f"{TOPIC}:1")
    service.start()
    caller, ledger = Caller(service.port), Ledger()
    members: list[LedgerMember] = []
    try:
        prepare(caller)
        members = [LedgerMember(service.kafka_port, name, ledger, POISON) for name in "ab"]
        for member in members:
            member.start()
        for round_number in range(ROUNDS):
            before = ledger.accepted_count
            write(caller, RECORDS_A_ROUND)
            wait(partial(goes_on, ledger, before), "nothing is accepted")
            time.sleep(dice.uniform(0, 0.1))
            service.kill()
            service.start()
            assert ledger.problems == [], f"round {round_number}"
        write(caller, 1)
        end = end_offset(caller)
        poison = set(range(0, end, POISON))
        wait(lambda: ledger.problems or poison <= dead_letters(caller).keys(), "a dead letter is missing")
        wait(
            lambda: ledger.problems or set(range(end)) - poison <= ledger.accepted | ledger.maybe,
            "a record was never accepted",
        )
        for member in members:
            member.stop()
        for member in members:
            member.join(PATIENCE)
        assert ledger.problems == []
        check(ledger, dead_letters(caller), end)
    finally:
        for member in members:
            member.stop()
        for member in members:
            member.join(PATIENCE)
        caller.close()
        assert service.process is not None
        stop_all([service.process])
    assert service.said("coordinator") == "", "nothing failed inside"


def check(ledger: Ledger, letters: dict[int, int], end: int) -> None:
    """Compare what members have seen with the dead letters, by offset."""
    assert set(ledger.deliveries) == set(range(end)), "each record is delivered at least once"
    assert max(count for counts in ledger.deliveries.values() for count in counts) <= LIMIT
    # A delivery that ended with the broker is not on record, as in Kafka; one that was given back is.
    assert max(ledger.released.values()) <= LIMIT
    assert set(letters) == set(range(0, end, POISON)), "poison records become dead letters, and no other does"
    assert set(letters.values()) == {LIMIT}


def prepare(caller: Caller) -> None:
    """Make the topic for dead letters, and the group's settings."""
    letters = {
        "name": LETTERS,
        "numPartitions": 1,
        "replicationFactor": -1,
        "assignments": [],
        "configs": [{"name": "errors.deadletterqueue.group.enable", "value": "true"}],
    }
    creating = {"topics": [letters], "timeoutMs": 10_000, "validateOnly": False}
    insist(caller, "CreateTopics", 7, creating, ALREADY_THERE)
    wanted = {
        "share.auto.offset.reset": "earliest",
        "share.delivery.count.limit": str(LIMIT),
        "errors.deadletterqueue.topic.name": LETTERS,
    }
    configs = [{"name": name, "configOperation": 0, "value": value} for name, value in wanted.items()]
    resource = {"resourceType": 32, "resourceName": GROUP, "configs": configs}
    insist(caller, "IncrementalAlterConfigs", 1, {"resources": [resource], "validateOnly": False})


def write(caller: Caller, count: int) -> None:
    """Records; more than so many where an answer is lost."""
    data = base64.b64encode(batch(*(f"job-{number}" for number in range(count)))).decode()
    topics = [{"name": TOPIC, "partitionData": [{"index": 0, "records": data}]}]
    insist(caller, "Produce", 9, {"acks": -1, "timeoutMs": 10_000, "topicData": topics})


def end_offset(caller: Caller) -> int:
    partition = {"partitionIndex": 0, "timestamp": -1}
    topics = [{"name": TOPIC, "partitions": [partition]}]
    answer = insist(caller, "ListOffsets", 7, {"replicaId": -1, "isolationLevel": 0, "topics": topics})
    offset: int = answer["topics"][0]["partitions"][0]["offset"]
    return offset


def dead_letters(caller: Caller) -> dict[int, int]:
    """The offset of each record that has a dead letter, with its delivery count there."""
    found: dict[int, int] = {}
    offset = 0
    while True:
        partition = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 2**20}
        body = {
            "maxWaitMs": 0,
            "minBytes": 1,
            "topics": [{"topic": LETTERS, "partitions": [partition]}],
            "forgottenTopicsData": [],
        }
        answer = insist(caller, "Fetch", 12, body)
        data = base64.b64decode(answer["responses"][0]["partitions"][0]["records"] or "")
        if not data:
            return found
        size = 12 + int.from_bytes(data[8:12], "big")
        for record in read_batch(data[:size]):
            headers = {name: (value or b"").decode() for name, value in record.headers}
            found[int(headers["__dlq.errors.offset"])] = int(headers["__dlq.errors.delivery.count"])
            offset += 1


def goes_on(ledger: Ledger, before: int) -> bool:
    return bool(ledger.problems) or ledger.accepted_count > before + 5


def wait(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
