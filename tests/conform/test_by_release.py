"""Older releases: which one a broker resembles, and what is compared with its answers in place of the newest ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rejoin.conform.commands.running import Wanted, main
from rejoin.conform.comparison.by_release import from_release
from rejoin.conform.comparison.compare import Difference
from rejoin.conform.comparison.outcomes import ClassifiedDifference, ScriptOutcome, classified
from rejoin.conform.judged_broker import look
from rejoin.conform.judging import Judge
from rejoin.conform.nearest_release import nearest_release
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.player.epochs import NEVER_REACHED, GroupEpochs
from rejoin.conform.player.messages import api_key
from rejoin.conform.player.older_versions import in_version, is_alike, version_to_ask, with_ids
from rejoin.conform.recordings.by_release import (
    RELEASES,
    FieldOfRelease,
    ReleaseRecording,
    branch_of,
    read_release,
    release_named,
)
from rejoin.conform.recordings.reading import SETS, PackedScript, read_set
from rejoin.protocol.brokers.releases import newest_versions
from tests.conform.own_broker import own_broker

# --- which release


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_with_the_versions_of_a_release_is_compared_with_it(release: str) -> None:
    spoken = {key: (0, newest) for key, newest in newest_versions(branch_of(release)).items()}
    assert nearest_release(spoken) == release


def test_apis_that_a_broker_does_not_speak_say_nothing_of_its_release() -> None:
    assert nearest_release({api_key("Produce"): (0, 12), api_key("Fetch"): (0, 17)}) == "4.0.2"
    assert nearest_release({}) == RELEASES[-1]


def test_a_release_is_named_with_and_without_its_patch() -> None:
    assert release_named("4.1") == release_named("4.1.2") == "4.1.2"
    assert release_named("4.10") is None


@pytest.mark.parametrize("release", RELEASES)
def test_recordings_name_scripts_and_steps_that_exist(release: str) -> None:
    scripts = {script.full_name: script for of_set in SETS for script in read_set(of_set)}
    for name, fields in read_release(release).scripts.items():
        asked = {line["n"]: (line["api"], line["version"]) for line in scripts[name].requests}
        assert all(asked[field.step] == (field.api, field.version) for field in fields), name
        assert all(field.newest != field.value for field in fields), name


# --- differences from a release


def found(step: int, path: str, kafka: object, other: object) -> tuple[ClassifiedDifference, ...]:
    return classified([Difference(step, "Heartbeat", 4, path, kafka, other)])


FENCED = FieldOfRelease(2, "Heartbeat", 4, "errorCode", 0, 110)


def test_an_answer_of_the_release_is_no_difference() -> None:
    assert from_release([FENCED], found(2, "errorCode", 0, 110)) == ()


def test_another_answer_differs_from_that_of_the_release() -> None:
    (one,) = from_release([FENCED], found(2, "errorCode", 0, 25))
    assert (one.kafka, one.other, one.kind) == (110, 25, "error")


def test_the_answer_of_the_newest_release_differs() -> None:
    (one,) = from_release([FENCED], ())
    assert (one.step, one.kafka, one.other, one.kind) == (2, 110, 0, "error")


def test_further_differences_stay() -> None:
    both = found(2, "errorCode", 0, 110) + found(3, "memberEpoch", 1, 2)
    assert [one.step for one in from_release([FENCED], both)] == [3]


def test_a_field_of_an_answer_that_never_came_is_not_named_beside_it() -> None:
    (one,) = from_release([FENCED], found(2, "", {"errorCode": 0}, "(no answer)"))
    assert one.path == ""


def test_fields_with_the_same_path_are_told_apart_by_their_values() -> None:
    fields = [replace(FENCED, path="members.memberEpoch", newest=value + 1, value=value) for value in (1, 2)]
    both = found(2, "members.memberEpoch", 3, 2) + found(2, "members.memberEpoch", 2, 1)
    assert from_release(fields, both) == ()


# --- older versions of requests


def a_line(api: str, version: int, request: Mapping[str, object], answer: object = None) -> dict[str, object]:
    return {"n": 1, "api": api, "version": version, "request": request, "answer": answer}


def test_topics_are_named_where_a_broker_knows_no_ids() -> None:
    topics = [{"topicId": "id:orders", "partitionData": []}]
    line = a_line("Produce", 13, {"transactionalId": "t", "acks": -1, "timeoutMs": 1, "topicData": topics})
    assert version_to_ask(line, {0: (3, 13)}) == 13
    assert version_to_ask(line, {0: (3, 12)}) == 12
    sent = in_version(line, 12)
    assert sent["request"]["topicData"] == [{"name": "orders", "partitionData": []}]
    assert with_ids("Produce", {"responses": [{"name": "orders"}]}) == {"responses": [{"topicId": "id:orders"}]}
    assert with_ids("ListOffsets", {"topics": [{"name": "orders"}]}) == {"topics": [{"name": "orders"}]}


def test_a_version_that_means_something_else_is_not_asked() -> None:
    in_transaction = a_line("Produce", 12, {"transactionalId": "t", "topicData": []})
    assert version_to_ask(in_transaction, {0: (3, 11)}) == 12
    assert version_to_ask({**in_transaction, "request": {"transactionalId": None, "topicData": []}}, {0: (3, 11)}) == 11
    pending = {"replicaId": -1, "topics": [{"name": "a", "partitions": [{"timestamp": -6}]}]}
    assert version_to_ask(a_line("ListOffsets", 11, pending), {2: (1, 10)}) == 11
    markers = {"markers": [{"transactionVersion": 2}]}
    assert version_to_ask(a_line("WriteTxnMarkers", 2, markers), {27: (1, 1)}) == 2
    assert version_to_ask(a_line("ApiVersions", 5, {}, {"errorCode": 35}), {18: (0, 4)}) == 5


def test_a_pattern_of_ids_needs_its_version() -> None:
    body: dict[str, object] = {"stateFilters": [], "producerIdFilters": [], "durationFilter": -1}
    for pattern, asked in (("tx-.*", 2), (None, 1)):
        line = a_line("ListTransactions", 2, {**body, "transactionalIdPattern": pattern})
        assert version_to_ask(line, {api_key("ListTransactions"): (0, 1)}) == asked


def test_an_unknown_id_is_an_unknown_topic_in_an_older_version() -> None:
    assert is_alike(100, 3)
    assert is_alike("(absent)", 0)
    assert not is_alike(3, 100)


# --- epochs of groups


def test_epochs_are_counted_from_the_first_one_of_their_group() -> None:
    epochs = GroupEpochs()
    joined = {"errorCode": 0, "memberEpoch": 1}
    heartbeat = {"groupId": "g", "memberEpoch": 0}
    epochs.learn("ConsumerGroupHeartbeat", heartbeat, {"errorCode": 0, "memberEpoch": 2}, joined)
    sent = [
        epochs.to_send("ConsumerGroupHeartbeat", {"groupId": "g", "memberEpoch": epoch})["memberEpoch"]
        for epoch in (-1, 0, 1, 2, 7)
    ]
    assert sent == [-1, 0, NEVER_REACHED, 1, 6]
    assert epochs.to_send("OffsetFetch", {"groups": [{"groupId": "g", "memberEpoch": 3}]}) == {
        "groups": [{"groupId": "g", "memberEpoch": 2}]
    }
    described = {"groups": [{"groupId": "g", "errorCode": 0, "groupEpoch": 1, "members": [{"memberEpoch": 0}]}]}
    read = epochs.as_recorded("ConsumerGroupDescribe", {"groupIds": ["g"]}, described)
    assert read == {"groups": [{"groupId": "g", "errorCode": 0, "groupEpoch": 2, "members": [{"memberEpoch": 0}]}]}
    other = {"groupId": "other", "memberEpoch": 2}
    assert epochs.to_send("ConsumerGroupHeartbeat", other) == other


# --- this broker as an older release

CONSUMER_GROUPS = tuple(
    f"consumer-protocol/groups/{name}"
    for name in ("heartbeat-reconciling", "heartbeat-left", "join-none", "offsets-stable", "classic-one", "members-017")
)
SHARE_GROUPS = (
    "share-groups/written/heartbeats",
    "share-groups/written/administration",
    "share-groups/random/random-0",
)
PLAYED = {
    "3.9": (
        "groups/plain/leaving/a-handed-out-id-that-was-never-used",
        "groups/plain/looking/listing-by-state",
        "groups/plain/syncing/while-preparing-for-the-first-time",
        "offsets/plain/commits/of-an-unknown-group-with-a-generation-in-version-v9",
    ),
    "4.0": (
        *CONSUMER_GROUPS,
        "transactions/one/produce-empty",
        "transactions/one/produce-fenced-while-ongoing",
        "transactions/unverified/offsets-unknown",
    ),
    "4.1": CONSUMER_GROUPS,
    "4.2": (*CONSUMER_GROUPS, *SHARE_GROUPS),
    "4.3": CONSUMER_GROUPS,
}
"""Scripts that are played on this broker with ``--as-kafka``, by release."""


async def judged(as_kafka: str, played: tuple[str, ...], compared_with: ReleaseRecording | None) -> list[ScriptOutcome]:
    sets = dict.fromkeys(name.partition("/")[0] for name in played)
    outcomes = []
    by_settings: dict[str, list[PackedScript]] = {}
    for script in [each for of_set in sets for each in read_set(of_set) if each.full_name in played]:
        by_settings.setdefault(json.dumps(script.header["settings"], sort_keys=True), []).append(script)
    for scripts in by_settings.values():
        settings = {name.replace(".", "_"): value for name, value in scripts[0].header["settings"].items()}
        async with own_broker(emulator_as_kafka=as_kafka, **settings) as address:
            judge = Judge(await look(address, BrokerAccess()), release=compared_with)
            outcomes += await judge.judge(scripts, lambda _: None)
    return outcomes


@pytest.mark.parametrize("as_kafka", PLAYED)
async def test_this_broker_answers_as_an_older_release(as_kafka: str) -> None:
    release = release_named(as_kafka)
    assert release is not None
    outcomes = await judged(as_kafka, PLAYED[as_kafka], read_release(release))
    assert len(outcomes) == len(PLAYED[as_kafka])
    assert {each.name: [str(one) for one in each.differences] for each in outcomes if each.word != "equal"} == {}


@pytest.mark.parametrize("as_kafka", ["3.9", "4.2"])
async def test_an_older_release_differs_from_the_newest(as_kafka: str) -> None:
    outcomes = await judged(as_kafka, PLAYED[as_kafka], None)
    assert all(each.word == "different" for each in outcomes)


async def test_the_newest_release_differs_from_an_older_one() -> None:
    outcomes = await judged("", PLAYED["4.2"], read_release("4.2.2"))
    assert all(each.word == "different" for each in outcomes)


# --- the command


def test_a_release_that_was_not_recorded_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Wanted("localhost:1", kafka="4.9")) == 2
    said = capsys.readouterr().err
    assert "--kafka 4.9: there is no recording of this release; expected 3.9, 4.0, 4.1, 4.2, 4.3, 4.4" in said


async def test_the_table_and_the_page_name_the_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with own_broker(emulator_as_kafka="4.1") as (host, port):
        wanted = Wanted(f"{host}:{port}", sets=("wire",), only="listed-twice", html=tmp_path / "page.html")
        await asyncio.to_thread(main, wanted)
        said = capsys.readouterr().out
        assert f"Apache Kafka 4.1.2, recorded, and {host}:{port} (nearest to the ApiVersions of {host}:{port};" in said
        assert "Apache Kafka 4.1.2, recorded" in (tmp_path / "page.html").read_text()
        chosen = replace(wanted, html=None, kafka="4.3", write_baseline=tmp_path / "known.json")
        await asyncio.to_thread(main, chosen)
        assert f"Apache Kafka 4.3.1, recorded, and {host}:{port}\n" in capsys.readouterr().out
        assert json.loads((tmp_path / "known.json").read_text())["kafka"] == "4.3.1"
