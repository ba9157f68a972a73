"""Every recorded problem has Kafka's own answer, list order included."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from rejoin.client.assignors import assignor_named
from rejoin.client.assignors.base import AssignorError
from tests.client.assignors.vectors import Vector, answer_of, article_examples, assignor_vectors, cluster_of, members_of
from tests.suite.cases import for_each

VECTORS = assignor_vectors()
ANSWERED = [vector for vector in VECTORS if "assignment" in vector]
REFUSED = [vector for vector in VECTORS if "error" in vector]


def _name(vector: Vector) -> str:
    return str(vector["id"])


def test_the_recording_is_whole() -> None:
    # If lines went missing, the tests below would pass with less to say.
    assert len(VECTORS) == 1233
    assert Counter(vector["assignor"] for vector in VECTORS) == {
        "range": 166,
        "roundrobin": 153,
        "sticky": 441,
        "cooperative-sticky": 473,
    }
    assert sum(vector["map_order"] == "sets" for vector in VECTORS) > 40
    assert len(REFUSED) == 10


@for_each("vector", ANSWERED, ids=_name, parts=4)
def test_answer_is_kafkas(vector: Vector) -> None:
    answer = assignor_named(vector["assignor"]).assign(cluster_of(vector), members_of(vector))
    assert answer == answer_of(vector)


@for_each("vector", REFUSED, ids=_name)
def test_where_kafka_throws_the_error_names_what_does_not_exist(vector: Vector) -> None:
    ghosts = [
        f"{topic}-{number}"
        for member in vector["members"]
        for topic, number in member["owned"]
        if topic in vector["topics"] and number >= vector["topics"][topic]
    ]
    with pytest.raises(AssignorError, match="do not exist") as refused:
        assignor_named(vector["assignor"]).assign(cluster_of(vector), members_of(vector))
    assert any(ghost in str(refused.value) for ghost in ghosts)


@for_each("vector", [v for v in VECTORS if "withheld" in v], ids=_name)
def test_withheld_partitions_are_kafkas(vector: Vector) -> None:
    members = members_of(vector)
    answer = assignor_named(vector["assignor"]).assign(cluster_of(vector), members)
    given = {partition for partitions in answer.values() for partition in partitions}
    wanted = {topic for member in members.values() for topic in member.subscription.topics}
    withheld = {
        (topic, number)
        for topic in wanted
        for number in range(vector["topics"].get(topic, 0))
        if (topic, number) not in given
    }
    assert withheld == {(topic, number) for topic, number in vector["withheld"]}


INSENSITIVE = [v for v in ANSWERED if not v["order_sensitive"] and len(v["members"]) <= 12]


@for_each("vector", INSENSITIVE[::3], ids=_name)
def test_order_of_joining_changes_nothing_where_kafkas_does_not(vector: Vector) -> None:
    order = [member["member_id"] for member in vector["members"]]
    random.Random(vector["id"]).shuffle(order)
    answer = assignor_named(vector["assignor"]).assign(cluster_of(vector), members_of(vector, order))
    assert answer == answer_of(vector)


@for_each("example", article_examples(), ids=_name)
def test_examples_of_articles(example: Vector) -> None:
    answer = assignor_named(example["assignor"]).assign(cluster_of(example), members_of(example))
    assert answer == answer_of(example, "kafka")
