"""Faults that name some entries of a request: these are affected, and the others are answered as usual."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Any, Final

import pytest
from pydantic import BaseModel

from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule, is_throttled
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.message import Request
from rejoin.protocol.registry import APIS, BY_NAME, Api
from rejoin.protocol.request_contents.entries import EntryList, EntrySelection, entry_lists
from rejoin.protocol.types import Entity, WireType
from rejoin.protocol.wire.codec import codec_of
from tests.coordinator.control.samples import joined, parse, stable
from tests.suite.cases import for_each

NOT_CHOSEN: Final = {
    "Fetch.forgotten_topics_data": "they leave the session and are not answered",
    "JoinGroup.protocols": "one member offers them",
    "SyncGroup.assignments": "a member is answered its own only",
    "ListGroups.states_filter": "a filter",
    "ListGroups.types_filter": "a filter",
    "ListTransactions.state_filters": "a filter",
    "ListTransactions.producer_id_filters": "a filter",
    "DescribeLogDirs.topics": "answered by directory, without an error for each",
    "UpdateFeatures.feature_updates": "of the node, which no field of a rule names",
    "CreateAcls.creations": "answered in order, by nothing that they name",
    "DeleteAcls.filters": "answered in order, by nothing that they name",
    "DescribeUserScramCredentials.users": "of the cluster's users, which no field of a rule names",
    "AlterUserScramCredentials.deletions": "of the cluster's users, which no field of a rule names",
    "AlterUserScramCredentials.upsertions": "of the cluster's users, which no field of a rule names",
    "CreateDelegationToken.renewers": "of one token, which has one answer",
    "DescribeDelegationToken.owners": "a filter",
    "DescribeClientQuotas.components": "a filter",
    "ListConfigResources.resource_types": "a filter",
    "AlterClientQuotas.entries": "of users, client ids and addresses, which no field of a rule names",
    "AddRaftVoter.listeners": "of one voter",
    "AlterReplicaLogDirs.dirs": "answered by topic, whatever the directory",
    "ListPartitionReassignments.topics": "a filter",
    "ConsumerGroupHeartbeat.subscribed_topic_names": "of one member",
    "ConsumerGroupHeartbeat.topic_partitions": "of one member",
    "ShareGroupHeartbeat.subscribed_topic_names": "of one member",
    **{
        f"StreamsGroupHeartbeat.{name}": "of one member"
        for name in (
            *("active_tasks", "standby_tasks", "warmup_tasks", "client_tags", "task_offsets", "task_end_offsets"),
            "topology.subtopologies",
        )
    },
    "ShareFetch.forgotten_topics_data": "they leave the session and are not answered",
}
"""Lists whose entries no rule can choose, and why."""

EVERY_VERSION: Final = [(api, version) for api in APIS for version in range(api.min_version, api.max_version + 1)]
RULE_FIELDS: Final = {
    Entity.GROUP_ID: "group",
    Entity.COORDINATOR_KEY: "group",
    Entity.MEMBER_ID: "member",
    Entity.TRANSACTIONAL_ID: "transactional_id",
    Entity.TOPIC_NAME: "topic",
    Entity.TOPIC_ID: "topic",
    Entity.RESOURCE_NAME: "topic",
    Entity.PARTITION: "partitions",
}
TOPIC_IDS: Final = {"A" * 21 + "Q": "one", "A" * 21 + "g": "two"}


def named(row: tuple[Api, int]) -> str:
    return f"{row[0].name}-{row[1]}"


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(clock="virtual", topics={"orders": 3, "bills": 1}, socket=False) as started:
        yield started


# --- every API


def made(spec: FieldSpec, number: int, version: int) -> Any:
    """A value of a field; different in each entry where it names something."""
    match spec.entity:
        case Entity.TOPIC_ID:
            return list(TOPIC_IDS)[number]
        case Entity.PARTITION | Entity.PRODUCER_ID:
            return number
        case entity if entity is not None and spec.value_type is WireType.STRING:
            return list(TOPIC_IDS.values())[number]
    if spec.name == "resource_type":
        return 2
    if spec.struct is not None:
        return filled(spec.struct, number, version)
    if spec.nullable is not None and not spec.is_array:
        return None
    values: dict[WireType | type, Any] = {WireType.STRING: "x", WireType.BOOL: False, WireType.BYTES: b""}
    return (values | {WireType.UUID: "A" * 22}).get(spec.value_type, 0)


def filled(model: type[BaseModel], number: int, version: int) -> Any:
    """A message with two entries in each list."""
    values: dict[str, Any] = {}
    for spec in fields_of(model):
        if spec.versions.carries(version) and (spec.is_array or spec.is_required or spec.entity is not None):
            one = (0, 1) if spec.is_array else (number,)
            several = tuple(made(spec, each, version) for each in one)
            values[spec.name] = several if spec.is_array else several[0]
    return model(**values)


def innermost(lists: tuple[EntryList, ...]) -> list[list[EntryList]]:
    """The lists from the outermost to one that has no others inside."""
    return [[each, *path] for each in lists for path in innermost(each.lists)] if lists else [[]]


@for_each("api", APIS, ids=lambda api: api.name)
def test_entries_of_every_list_can_be_chosen(api: Api) -> None:
    """For a new API: add its list to ``NOT_CHOSEN`` with the reason, or let the response name what the list names."""
    for version in range(api.min_version, api.max_version + 1):
        chosen = {each.asked.name for each in entry_lists(api.request, api.response, version)}
        lists = {each.name for each in fields_of(api.request) if each.is_array and each.versions.carries(version)}
        reasons = {name.partition(".")[2] for name in NOT_CHOSEN if name.startswith(f"{api.name}.")}
        assert lists - chosen <= reasons, f"v{version}: {lists - chosen - reasons}"


@for_each("api, version", EVERY_VERSION, ids=named)
def test_one_entry_of_each_list_fails(api: Api, version: int) -> None:
    lists = entry_lists(api.request, api.response, version)
    request: Request = filled(api.request, 0, version)
    for path in innermost(lists) if lists else []:
        # The second entry of every list on the path.
        wanted: dict[Entity, Any] = {}
        for each in path:
            scalars = [each.asked] if each.asked.struct is None else fields_of(each.asked.struct)
            for spec in scalars:
                entity = spec.entity
                if (
                    entity in RULE_FIELDS
                    and not (spec.is_array and each.asked.struct)
                    and spec.versions.carries(version)
                ):
                    entity = {"group": Entity.GROUP_ID, "topic": Entity.TOPIC_NAME}.get(RULE_FIELDS[entity], entity)
                    wanted[entity] = (1,) if entity is Entity.PARTITION else ("two",)
        if not wanted:
            assert api.name in ("UpdateFeatures",), "entries that no rule can name"
            continue
        selection = EntrySelection(request, version, wanted, TOPIC_IDS.get)
        assert selection.is_possible
        chosen, rest = selection.split()
        assert chosen is not None
        assert rest is not None
        whole = filled_response(lists, request, api, ErrorCode.NONE)
        got = selection.failed(whole, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert len(list(errors_in(got, lists))) == len(list(errors_in(whole, lists)))
        failed = [error for error in errors_in(got, lists) if error is ErrorCode.UNKNOWN_SERVER_ERROR]
        asked = 2 if api.name == "WriteTxnMarkers" else 1
        assert len(failed) == asked
        codec = codec_of(api.key, version)
        assert codec is None or codec.response_frame(0, got), "it can be written"
        restored = selection.replaced(got, whole)
        assert list(errors_in(restored, lists)) == list(errors_in(whole, lists))
        added = selection.failed(filled_response(lists, rest, api, ErrorCode.NONE), ErrorCode.UNKNOWN_SERVER_ERROR)
        assert sorted(errors_in(added, lists)) == sorted(errors_in(got, lists)), "a missing entry is added"


def filled_response(lists: tuple[EntryList, ...], request: Any, api: Api, error: ErrorCode) -> Any:
    """The response that answers each entry of a request with an error, and all that are inside."""
    model: Any = api.response
    return model(**{each.answered.name: filled_entries(each, request, error) for each in lists})


def filled_entries(entries: EntryList, part: Any, error: ErrorCode) -> tuple[Any, ...]:
    return tuple(
        entries.failed(item, error).model_copy(
            update={each.answered.name: filled_entries(each, item, error) for each in entries.lists}
        )
        for item in entries.items(part)
    )


def errors_in(part: Any, lists: tuple[EntryList, ...]) -> Any:
    for each in lists:
        for entry in getattr(part, each.answered.name):
            if each.error is not None:
                yield getattr(entry, each.error)
            yield from errors_in(entry, each.lists)


@for_each("api, version", EVERY_VERSION, ids=named)
def test_an_entry_that_fails_alone_is_that_of_a_request_that_fails(api: Api, version: int) -> None:
    lists = entry_lists(api.request, api.response, version)
    request: Request = filled(api.request, 0, version)
    whole = request.error_response(version, ErrorCode.UNKNOWN_SERVER_ERROR)
    for each in lists:
        entries = getattr(whole, each.answered.name)
        made_here = [each.failed(item, ErrorCode.UNKNOWN_SERVER_ERROR) for item in each.items(request)]
        if entries:
            texts = {"errorMessage"}
            got, expected = ([without(entry, texts) for entry in some] for some in (made_here, entries))
            assert sorted(got, key=str) == sorted(expected, key=str)


def without(entry: Any, names: set[str]) -> Any:
    return {name: value for name, value in entry.model_dump().items() if name not in names}


@for_each("api, version", EVERY_VERSION, ids=named)
def test_every_answer_with_a_throttle_can_be_throttled(api: Api, version: int) -> None:
    there = any(each.name == "throttle_time_ms" and each.versions.carries(version) for each in fields_of(api.response))
    assert is_throttled(api, version) is there
    rule = {"keys": api.name, "version": version, "throttle_ms": 5}
    if there:
        assert FaultRule.model_validate(rule).effective_when == "after"
    else:
        with pytest.raises(ValueError, match="throttle_ms: no answer to"):
            FaultRule.model_validate(rule)


# --- what becomes of the entries


def commit(offset: int, group: str = "g") -> Request:
    topics = [
        {
            "name": "orders",
            "partitions": [
                {"partitionIndex": each, "committedOffset": offset, "committedMetadata": None} for each in (0, 1)
            ],
        }
    ]
    who = {"groupId": group, "memberId": "", "generationIdOrMemberEpoch": -1, "groupInstanceId": None}
    return parse("OffsetCommit", {**who, "topics": topics}, 9)


async def committed(coordinator: GroupCoordinator) -> list[int]:
    topics = [{"name": "orders", "partitionIndexes": [0, 1]}]
    body = {"groups": [{"groupId": "g", "topics": topics}], "requireStable": False}
    answer: Any = await coordinator.call(parse("OffsetFetch", body, 9), 9)
    return [each.committed_offset for each in answer.groups[0].topics[0].partitions]


def errors(answer: Any) -> dict[int, str]:
    partitions = answer.topics[0].partitions
    return {each.partition_index: each.error_code.name for each in partitions}


async def test_before_one_partition_is_not_committed(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(topic="orders", partitions=0, error="COORDINATOR_LOAD_IN_PROGRESS")
    answer = await coordinator.call(commit(4), 9)
    assert errors(answer) == {0: "COORDINATOR_LOAD_IN_PROGRESS", 1: "NONE"}
    assert fault.hits == 1
    (sent,) = await coordinator.requests("OffsetCommit")
    assert (sent.request, sent.response) == (commit(4), answer), "one request, and the answer that arrived"
    assert await committed(coordinator) == [-1, 4]


async def test_after_one_partition_is_committed_and_fails(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(keys="OffsetCommit", partitions=0, error="REQUEST_TIMED_OUT", when="after")
    assert errors(await coordinator.call(commit(4), 9)) == {0: "REQUEST_TIMED_OUT", 1: "NONE"}
    assert await committed(coordinator) == [4, 4]


async def test_a_delay_of_one_partition_does_not_hold_up_the_other(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(keys="OffsetCommit", partitions=0, latency_ms=1_000)
    asked = asyncio.ensure_future(coordinator.call(commit(4), 9))
    await asyncio.sleep(0)
    assert await committed(coordinator) == [-1, 4]
    await coordinator.advance(1_000)
    assert errors(await asked) == {0: "NONE", 1: "NONE"}
    assert await committed(coordinator) == [4, 4]


async def test_a_rule_whose_fields_name_two_entries_does_not_match(coordinator: GroupCoordinator) -> None:
    fault = await coordinator.add_fault(keys="OffsetFetch", group="one", topic="bills", error="NOT_COORDINATOR")
    named = {"one": "orders", "two": "bills"}
    groups = [
        {"groupId": group, "topics": [{"name": topic, "partitionIndexes": [0]}]} for group, topic in named.items()
    ]
    answer: Any = await coordinator.call(parse("OffsetFetch", {"groups": groups, "requireStable": False}, 9), 9)
    assert [group.topics[0].partitions[0].error_code.name for group in answer.groups] == ["NONE", "NONE"]
    assert fault.hits == 0


async def test_one_group_of_several_fails(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(keys="DescribeGroups", group="two", error="NOT_COORDINATOR", count=-1)
    body = {"groups": ["one", "two", "three"], "includeAuthorizedOperations": False}
    answer: Any = await coordinator.call(parse("DescribeGroups", body, 5), 5)
    assert {group.group_id: group.error_code.name for group in answer.groups} == {
        "one": "NONE",
        "two": "NOT_COORDINATOR",
        "three": "NONE",
    }


async def test_one_member_of_several_stays(coordinator: GroupCoordinator) -> None:
    member_id = await stable(coordinator)
    waiting = await joined(coordinator, client_id="other")
    group = await coordinator.group("g")
    assert group is not None
    other = next(each.member_id for each in group.members if each.member_id != member_id)
    await coordinator.add_fault(keys="LeaveGroup", member=other, error="COORDINATOR_NOT_AVAILABLE")
    members = [{"memberId": each, "groupInstanceId": None, "reason": None} for each in (member_id, other)]
    answer: Any = await coordinator.call(parse("LeaveGroup", {"groupId": "g", "members": members}, 5), 5)
    assert {each.member_id: each.error_code.name for each in answer.members} == {
        member_id: "NONE",
        other: "COORDINATOR_NOT_AVAILABLE",
    }
    group = await coordinator.group("g")
    assert group is not None
    assert [each.member_id for each in group.members] == [other]
    waiting.cancel()


async def test_one_partition_of_a_fetch_fails_and_the_other_is_read(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("orders", None, 1)
    partitions = [{"partition": each, "fetchOffset": 0, "partitionMaxBytes": 10_000} for each in (0, 1)]
    body = {"maxWaitMs": 0, "minBytes": 1, "topics": [{"topic": "orders", "partitions": partitions}]}
    fetch = parse("Fetch", {**body, "forgottenTopicsData": []}, 12)
    await coordinator.add_fault(keys="Fetch", topic="orders", partitions=1, error="NOT_LEADER_OR_FOLLOWER")
    answer: Any = await coordinator.call(fetch, 12)
    got = {each.partition_index: (each.error_code.name, bool(each.records)) for each in answer.responses[0].partitions}
    assert got == {0: ("NONE", True), 1: ("NOT_LEADER_OR_FOLLOWER", False)}
    assert answer.error_code is ErrorCode.NONE
    await coordinator.add_fault(wrong="flipped_bit", topic="orders", partitions=1)
    wrong: Any = await coordinator.call(fetch, 12)
    right: Any = await coordinator.call(fetch, 12)
    pairs = islice(zip(wrong.responses[0].partitions, right.responses[0].partitions, strict=True), 2)
    assert [bytes(one.records) == bytes(other.records) for one, other in pairs] == [True, False]


async def test_a_throttle_is_said_in_the_answer(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(throttle_ms=700)
    answer: Any = await coordinator.call(commit(4), 9)
    assert (answer.throttle_time_ms, errors(answer)) == (700, {0: "NONE", 1: "NONE"})
    await coordinator.add_fault(throttle_ms=9, error="NOT_COORDINATOR")
    answer = await coordinator.call(commit(4), 9)
    assert (answer.throttle_time_ms, set(errors(answer).values())) == (9, {"NOT_COORDINATOR"})


async def test_a_rule_for_one_transactional_id(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(transactional_id="x", error="COORDINATOR_LOAD_IN_PROGRESS")
    for name, error in (("y", "NONE"), ("x", "COORDINATOR_LOAD_IN_PROGRESS")):
        asked = BY_NAME["InitProducerId"].request(transactional_id=name, transaction_timeout_ms=1_000)  # type: ignore[call-arg]
        answer: Any = await coordinator.call(asked, 5)
        assert answer.error_code.name == error


async def test_one_topic_of_described_settings_fails(coordinator: GroupCoordinator) -> None:
    await coordinator.add_fault(keys="DescribeConfigs", topic="bills", error="TOPIC_AUTHORIZATION_FAILED")
    names = ("orders", "bills")
    resources = [{"resourceType": 2, "resourceName": name, "configurationKeys": None} for name in names]
    answer: Any = await coordinator.call(parse("DescribeConfigs", {"resources": resources}, 4), 4)
    got = {each.resource_name: each.error_code.name for each in answer.results}
    assert got == {"orders": "NONE", "bills": "TOPIC_AUTHORIZATION_FAILED"}
