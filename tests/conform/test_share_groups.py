"""Scripts of share groups: how they are packed, which broker can be asked, and the form of their answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.packing_share_groups import SETTINGS, scripts_of_share_groups
from rejoin.conform.applicability import BrokerFeatures, why_not
from rejoin.conform.comparison.brief_answers import brief, only_codes
from rejoin.conform.judged_broker import look
from rejoin.conform.judging import Judge
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.player.epochs import GroupEpochs
from rejoin.conform.player.messages import Json, api_key, newest
from rejoin.conform.player.prefix import RunPrefix
from rejoin.conform.recordings.reading import read_set
from tests.conform import share_mutations
from tests.conform.own_broker import own_broker

SCRIPTS = {script.name: script for script in read_set("share-groups")}
LOCKS, SESSIONS, THROTTLED = (SCRIPTS[f"written/{name}"] for name in ("locks", "sessions", "throttled"))
HEARTBEAT = "ShareGroupHeartbeat"


def test_every_recording_is_packed_and_can_be_asked() -> None:
    """Otherwise: ``python -m conformance.packing share-groups``."""
    packed = [(header, lines) for _, header, lines in scripts_of_share_groups()]
    assert packed == [(script.header, script.lines) for script in SCRIPTS.values()]
    assert len(packed) == 69
    assert [script.unplayable for script in SCRIPTS.values()] == [None] * 69


# --- what cannot be asked


def speaking(*without: str, **settings: str) -> BrokerFeatures:
    apis = {line["api"] for script in SCRIPTS.values() for line in script.requests} - set(without)
    here = SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerFeatures({api_key(api): (0, newest(api)) for api in apis}, here)


def test_a_broker_without_share_groups_is_not_asked() -> None:
    assert {why_not(script, speaking()) for script in SCRIPTS.values()} == {None}
    assert why_not(SESSIONS, speaking("ShareFetch")) == "ShareFetch is not spoken"
    older = speaking()
    older.versions[api_key("ShareFetch")] = (1, 1)
    assert why_not(SESSIONS, older) == "ShareFetch v2 is not spoken, v1 to v1 are"


def test_a_broker_that_cannot_keep_the_state_is_not_asked() -> None:
    without = replace(speaking(), keeps_share_state=False)
    assert "share.coordinator.state.topic.replication.factor" in str(why_not(SESSIONS, without))
    assert why_not(SCRIPTS["written/persister"], without) is not None


def test_settings_count_where_a_script_shows_them() -> None:
    other = speaking(group_share_assignment_interval_ms="1000")
    assert why_not(SESSIONS, other) == "group.share.assignment.interval.ms is 1000, and was 0 in the recording"
    longer = speaking(group_share_min_record_lock_duration_ms="15000")
    assert why_not(LOCKS, longer) == "group.share.min.record.lock.duration.ms is 15000, and was 1000 in the recording"
    assert why_not(SESSIONS, longer) is None, "it leaves the lock's duration as it is"
    assert why_not(SESSIONS, speaking(share_coordinator_state_topic_num_partitions="50")) is None


# --- the form of answers


def batch(base: int, last: int, attributes: int = 0) -> Json:
    return {"baseOffset": base, "lastOffsetDelta": last - base, "attributes": attributes}


def test_batches_and_assignments_are_brief() -> None:
    line = {"api": "ShareFetch", "answer": {}}
    answer = {"errorMessage": "no", "records": {"batches": [batch(0, 2), batch(3, 3, 16), batch(4, 4, 48)]}}
    assert brief(line, answer) == {"records": [[0, 2, "plain"], [3, 3, "transactional"], [4, 4, "control"]]}
    assert brief(line, {"records": None}) == {"records": None}
    assert brief(line, {"topicId": "id:a", "partitions": [0, 2]}) == {"topicId": "id:a", "partitions": 2}


def test_dead_letters_are_read_without_the_names_of_the_run() -> None:
    header = {"key": "__dlq.errors.group", "value": "run-g"}
    record = {"offsetDelta": 1, "key": None, "value": "v", "headers": [header]}
    partition = {"records": {"batches": [batch(4, 5) | {"records": [record]}]}}
    line = {"api": "Fetch", "answer": {"letters": []}}
    letter = {"offset": 5, "key": None, "value": "v", "headers": [["__dlq.errors.group", "g"]]}
    assert brief(line, {"responses": [{"partitions": [partition]}]}, "run-") == {"letters": [letter]}


def test_of_an_answer_that_varies_the_error_codes_are_left() -> None:
    group = {"groupId": "g", "errorCode": 0, "groupEpoch": 4}
    assert only_codes({"groups": [group]}) == {"groups": [{"groupId": "g", "errorCode": 0}]}


# --- names and epochs


def test_topics_of_dead_letters_keep_the_beginning_that_brokers_ask_for() -> None:
    prefix = RunPrefix("run-")
    configs = [{"name": "errors.deadletterqueue.topic.name", "value": "dlq.a"}, {"name": "other", "value": "dlq.a"}]
    asked = {"resources": [{"resourceType": 32, "resourceName": "g", "configs": configs}]}
    (sent,) = prefix.outgoing("IncrementalAlterConfigs", asked)["resources"]
    assert sent["resourceName"] == "run-g"
    assert [each["value"] for each in sent["configs"]] == ["dlq.run-a", "dlq.a"]
    assert prefix.plain("dlq.run-a") == "dlq.a"
    assert [prefix.is_of_run(name) for name in ("run-a", "dlq.run-a", "dlq.a", "a")] == [True, True, False, False]


def test_a_member_goes_on_from_the_epoch_that_it_was_given() -> None:
    epochs = GroupEpochs()
    beat = {"groupId": "g", "memberId": "a", "memberEpoch": 2}
    epochs.learn(HEARTBEAT, beat, {"errorCode": 0, "memberEpoch": 3}, {"errorCode": 0, "memberEpoch": 5})
    assert epochs.to_send(HEARTBEAT, beat | {"memberEpoch": 3})["memberEpoch"] == 5
    assert epochs.to_send(HEARTBEAT, beat | {"memberEpoch": -1})["memberEpoch"] == -1
    assert epochs.to_send(HEARTBEAT, beat | {"memberId": "b"})["memberEpoch"] == 2


# --- broken rules


async def test_a_broken_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    share_mutations.delivery_counts_do_not_rise(monkeypatch)
    async with own_broker(group_share_assignment_interval_ms=0) as address:
        judge = Judge(await look(address, BrokerAccess()))
        (outcome,) = await judge.judge([THROTTLED], lambda _: None)
        assert await judge.clean_up() == []
    assert any(one.path.endswith("deliveryCount") for one in outcome.differences), outcome.differences
