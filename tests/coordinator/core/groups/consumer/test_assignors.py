"""The server-side assignors answer as Kafka's: 1,560 recorded problems, and what a user may rely on besides."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import EntryPoint, EntryPoints
from random import Random
from typing import Any, Final

import pytest

from rejoin.coordinator.core.groups.consumer.assignors import (
    Assignments,
    AssignorMember,
    ServerAssignor,
    SubscriptionKind,
    UnknownServerAssignor,
    assignors_of,
)
from rejoin.coordinator.core.groups.consumer.assignors.registry import ENTRY_POINT_GROUP
from rejoin.coordinator.core.groups.consumer.assignors.uniform import topic_order
from rejoin.protocol import plugins
from tests.paths import ROOT

PROBLEMS: Final = ROOT / "tests/golden/server-assignors.jsonl.gz"

HOMOGENEOUS, HETEROGENEOUS = SubscriptionKind

ORDERS: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
PAYMENTS: Final = "AAAAAAAAAAAAAAAAAAAAAg"


def read_problems() -> Iterator[dict[str, Any]]:
    with gzip.open(PROBLEMS, "rt") as lines:
        for line in lines:
            yield json.loads(line)


def shown(assignments: Assignments) -> dict[str, dict[str, list[int]]]:
    """What each member gets, without empty lists."""
    found = {
        member_id: {topic_id: sorted(partitions) for topic_id, partitions in topics.items() if partitions}
        for member_id, topics in assignments.items()
    }
    return {member_id: topics for member_id, topics in found.items() if topics}


def subscription(topic_ids: Collection[str], target: Mapping[str, Collection[int]] | None = None) -> AssignorMember:
    return AssignorMember(topic_ids=tuple(topic_ids), target=target or {})


def with_ids(topics: Mapping[str, Any], partitions: Mapping[str, list[int]]) -> dict[str, frozenset[int]]:
    return {topics[name]["id"]: frozenset(found) for name, found in partitions.items()}


def members_of(problem: dict[str, Any]) -> dict[str, AssignorMember]:
    topics = problem["topics"]
    return {
        member["member_id"]: AssignorMember(
            instance_id=member["instance_id"],
            rack_id=member["rack_id"],
            topic_ids=tuple(topics[name]["id"] for name in member["topics"]),
            target=with_ids(topics, member["target"]),
        )
        for member in problem["members"]
    }


def test_every_recorded_problem_is_answered_as_kafka_does() -> None:
    assignors = assignors_of("uniform,range")
    wrong = []
    for problem in read_problems():
        topics = problem["topics"]
        counts = {topic["id"]: topic["partitions"] for topic in topics.values()}
        answer = assignors[problem["assignor"]].assign(
            members_of(problem), counts, SubscriptionKind[problem["subscription_type"]]
        )
        kafkas = {member_id: with_ids(topics, given) for member_id, given in problem["assignment"].items()}
        if shown(answer) != shown(kafkas):
            wrong.append(problem["id"])
    assert wrong == []


def test_the_order_of_topics_is_that_of_java() -> None:
    for problem in read_problems():
        if problem["assignor"] == "uniform" and problem["subscription_type"] == "HOMOGENEOUS":
            ids = {name: topic["id"] for name, topic in problem["topics"].items()}
            order = [ids[name] for name in problem["topic_order"]]
            assert topic_order([ids[name] for name in problem["members"][0]["topics"]]) == order


def test_the_default_is_the_first_that_is_named() -> None:
    assert list(assignors_of("range, uniform")) == ["range", "uniform"]


def test_what_a_member_has_already_it_keeps() -> None:
    """One leaves; the others keep all they have and share what it had."""
    uniform = assignors_of("uniform")["uniform"]
    topics = (ORDERS,)
    before = uniform.assign({f"m-{n}": subscription(topics) for n in range(4)}, {ORDERS: 12}, HOMOGENEOUS)
    left = {member_id: subscription(topics, target) for member_id, target in before.items() if member_id != "m-1"}
    after = uniform.assign(left, {ORDERS: 12}, HOMOGENEOUS)
    assert all({*before[member_id][ORDERS]} < {*after[member_id][ORDERS]} for member_id in left)
    assert {len(after[member_id][ORDERS]) for member_id in left} == {4}


@pytest.mark.parametrize("kind", SubscriptionKind)
def test_as_many_partitions_may_have_two_owners_as_have_none(kind: SubscriptionKind) -> None:
    both = {ORDERS: frozenset({0, 1})}
    members = {name: subscription((ORDERS,), both) for name in ("a", "b")}
    answer = assignors_of("uniform")["uniform"].assign(members, {ORDERS: 4}, kind)
    assert sorted(partition for target in answer.values() for partition in target[ORDERS]) == [0, 1, 2, 3]


def test_the_order_in_which_a_python_set_has_its_topics_does_not_count() -> None:
    topics = [f"{n:021d}A" for n in range(30)]
    counts = dict.fromkeys(topics, 5)
    answers = []
    for seed in range(3):
        Random(seed).shuffle(topics)
        members = {f"m-{n}": AssignorMember(topic_ids=frozenset(topics)) for n in range(7)}
        answers.append(shown(assignors_of("uniform")["uniform"].assign(members, counts, HOMOGENEOUS)))
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("name", ["uniform", "range"])
@pytest.mark.parametrize("kind", SubscriptionKind)
def test_every_partition_has_one_owner_that_subscribes_to_its_topic(name: str, kind: SubscriptionKind) -> None:
    random = Random(f"{name} {kind}")
    assignor = assignors_of(name)[name]
    for _ in range(50):
        topics = [f"{random.randrange(10**9):021d}A" for _ in range(random.randrange(1, 6))]
        counts = {topic_id: random.randrange(9) for topic_id in topics}
        members: dict[str, AssignorMember] = {}
        for number in range(random.randrange(1, 7)):
            wanted = [t for t in topics if kind is HOMOGENEOUS or random.random() < 0.6]
            members[f"m-{number}"] = subscription(wanted)
        for _ in range(3):
            answer = assignor.assign(members, counts, kind)
            given = [
                (topic_id, partition)
                for member_id, target in answer.items()
                for topic_id, partitions in target.items()
                for partition in partitions
                if topic_id in members[member_id].topic_ids
            ]
            subscribed = {topic_id for member in members.values() for topic_id in member.topic_ids}
            assert sorted(given) == sorted((t, p) for t in subscribed for p in range(counts[t]))
            members.pop(random.choice([*members])) if len(members) > 1 else None
            members = {m: subscription(s.topic_ids, answer.get(m)) for m, s in members.items()}


@pytest.mark.parametrize("name", ["uniform", "range"])
@pytest.mark.parametrize("kind", SubscriptionKind)
def test_nothing_to_assign_is_no_error(name: str, kind: SubscriptionKind) -> None:
    assignor = assignors_of(name)[name]
    assert shown(assignor.assign({}, {}, kind)) == {}
    assert shown(assignor.assign({"m": subscription(())}, {}, kind)) == {}
    assert shown(assignor.assign({"m": subscription((ORDERS,))}, {ORDERS: 0}, kind)) == {}


ONE_BUCKET: Final = (ORDERS, "AAAAAAAAAAEAAAAAAAAAAA")
"""Two ids with the same hash code, 1."""


@pytest.mark.parametrize("kind", SubscriptionKind)
def test_of_two_topics_in_a_bucket_the_one_that_came_last_is_kept_first(kind: SubscriptionKind) -> None:
    assignor = assignors_of("uniform")["uniform"]
    first, second = ONE_BUCKET
    before: Assignments = {}
    for topics in ((first,), ONE_BUCKET):
        members = {"m": subscription(topics, before.get("m"))}
        before = assignor.assign(members, dict.fromkeys(topics, 2), kind)
    assert list(before["m"]) == [second, first]
    members = {"m": subscription(ONE_BUCKET, before["m"]), "n": subscription(ONE_BUCKET)}
    answer = assignor.assign(members, dict.fromkeys(ONE_BUCKET, 2), HOMOGENEOUS)
    assert shown(answer) == {"m": {second: [0, 1]}, "n": {first: [0, 1]}}


def test_names_without_a_topic_make_room_in_the_set_of_topics() -> None:
    with_hash_16 = "AAAAAAAAAAAAAAAAAAAAEA"
    assert topic_order((ORDERS, with_hash_16), 11) == [with_hash_16, ORDERS]
    assert topic_order((ORDERS, with_hash_16), 12) == [ORDERS, with_hash_16]


def test_range_divides_topics_of_the_same_size_alike_and_puts_static_members_first() -> None:
    members = {
        "a": AssignorMember(topic_ids=(ORDERS, PAYMENTS)),
        "z": AssignorMember(topic_ids=(ORDERS, PAYMENTS), instance_id="first"),
    }
    answer = assignors_of("range")["range"].assign(members, {ORDERS: 3, PAYMENTS: 3}, HOMOGENEOUS)
    assert shown(answer) == {"z": {ORDERS: [0, 1], PAYMENTS: [0, 1]}, "a": {ORDERS: [2], PAYMENTS: [2]}}


class FirstTakesAll(ServerAssignor):
    """An assignor of a user."""

    name = "first-takes-all"

    def assign(
        self,
        members: Mapping[str, AssignorMember],
        partition_counts: Mapping[str, int],
        kind: SubscriptionKind,
    ) -> Assignments:
        first = next(iter(members), None)
        return {} if first is None else {first: {topic: range(count) for topic, count in partition_counts.items()}}


def test_users_bring_their_own_by_path_and_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{__name__}:FirstTakesAll"
    declared = EntryPoints([EntryPoint("first-takes-all", path, ENTRY_POINT_GROUP)])
    monkeypatch.setattr(plugins, "entry_points", lambda group: declared.select(group=group))
    for names in (f"uniform,{path}", "uniform,first-takes-all"):
        found = assignors_of(names)
        assert list(found) == ["uniform", "first-takes-all"]
        assert shown(found["first-takes-all"].assign({"m": subscription((ORDERS,))}, {ORDERS: 2}, HETEROGENEOUS)) == {
            "m": {ORDERS: [0, 1]}
        }


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("unifrom", "unknown server-side assignor 'unifrom'; is it uniform[?] known are uniform, range, and any class"),
        (" ", "no server-side assignor is named; known are uniform, range"),
        (f"{__name__}:ORDERS", "is not a subclass of rejoin.coordinator.core.groups.consumer.assignors.ServerAssignor"),
    ],
)
def test_an_unknown_assignor_says_what_is_known(names: str, problem: str) -> None:
    with pytest.raises(UnknownServerAssignor, match=problem):
        assignors_of(names)
