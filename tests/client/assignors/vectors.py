"""Reads the recorded answers of Kafka's own assignors (see tests/golden)."""

from __future__ import annotations

import gzip
import json
from typing import Any

from rejoin.client.assignors import ClusterView, MemberSubscription
from rejoin.client.assignors.stickiness.user_data import encode_sticky_user_data
from rejoin.protocol.embedded.consumer_protocol import Subscription, decode_subscription, encode_subscription
from rejoin.protocol.types import TopicPartition
from tests import paths

GOLDEN = paths.GOLDEN

Vector = dict[str, Any]


def assignor_vectors() -> list[Vector]:
    """Every recorded problem, with Kafka's answer."""
    with gzip.open(GOLDEN / "assignors.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def article_examples() -> list[Vector]:
    """The worked examples of articles, with what Kafka really answers."""
    examples: list[Vector] = json.loads((GOLDEN / "seed-examples.json").read_text(encoding="utf-8"))["examples"]
    return examples


def cluster_of(vector: Vector) -> ClusterView:
    """The metadata of a problem."""
    return ClusterView(vector["topics"], vector.get("racks", {}))


def members_of(vector: Vector, order: list[str] | None = None) -> dict[str, MemberSubscription]:
    """The members of a problem in join order, or in another; each subscription has been bytes once."""
    members = {member["member_id"]: _member(vector["assignor"], member) for member in vector["members"]}
    return {member_id: members[member_id] for member_id in order or members}


def _member(assignor: str, member: dict[str, Any]) -> MemberSubscription:
    owned = tuple(TopicPartition(topic, number) for topic, number in member["owned"])
    generation = member["generation"]
    user_data = None
    if assignor == "sticky":
        if owned or generation != -1:
            user_data = encode_sticky_user_data(owned, generation)
        owned = ()
    subscription = Subscription(
        tuple(member["topics"]),
        user_data,
        owned,
        member.get("subscription_generation", generation),
        member.get("rack"),
    )
    return MemberSubscription(decode_subscription(encode_subscription(subscription)), member["group_instance_id"])


def answer_of(vector: Vector, field: str = "assignment") -> dict[str, list[tuple[str, int]]]:
    """Kafka's recorded answer."""
    return {member_id: [(topic, number) for topic, number in given] for member_id, given in vector[field].items()}
