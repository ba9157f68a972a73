"""The worked examples of four articles on assignors, run end to end through the service.

Members join over HTTP, the leader assigns with the members it is given, the coordinator hands out. The result must be
what Apache Kafka gives; where the article claims another, the test says so by name.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from rejoin.client.assignors import Assignor, ClusterView, MemberSubscription, assignor_named
from rejoin.protocol.embedded.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from rejoin.protocol.types import TopicPartition
from tests import paths
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness

EXAMPLES: list[dict[str, Any]] = json.loads((paths.GOLDEN / "seed-examples.json").read_text())["examples"]

Shares = dict[str, list[tuple[str, int]]]


class WireMember:
    """A consumer as it shows itself on the wire: what it owned goes into its subscription, as the Java client does."""

    def __init__(self, node: Harness, assignor_name: str, member: dict[str, Any]) -> None:
        self.node = node
        self.name: str = member["member_id"]
        self.instance_id: str | None = member["group_instance_id"]
        self.assignor: Assignor = assignor_named(assignor_name)
        self.member_id = ""
        owned = tuple(TopicPartition(topic, partition) for topic, partition in member["owned"])
        generation: int = member["generation"]
        if generation >= 0:
            self.assignor.on_assignment(Assignment(partitions=owned, user_data=None), generation)
        topics = tuple(member["topics"])
        self.metadata = encode_subscription(
            Subscription(
                topics=topics,
                user_data=self.assignor.subscription_user_data(topics),
                owned_partitions=owned if assignor_name == "cooperative-sticky" else (),
                generation_id=generation,
            )
        )

    async def join(self) -> dict[str, Any]:
        """JoinGroup: first for an id, then with it; returns when the join phase has ended."""
        body = {
            "groupId": "articles",
            "sessionTimeoutMs": 10_000,
            "rebalanceTimeoutMs": 60_000,
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
            "protocolType": "consumer",
            "protocols": [{"name": self.assignor.name, "metadata": base64.b64encode(self.metadata).decode()}],
        }
        answer = await self.node.call("JoinGroup", body, Kafka_Client_Id=self.name)
        self.member_id = answer["memberId"]
        return answer if answer["errorCode"] == 0 else await self.join()

    def assign(self, joined: dict[str, Any], topics: dict[str, int]) -> list[dict[str, str]]:
        """What the leader sends: every member's assignment; nothing from a follower."""
        members = {
            entry["memberId"]: MemberSubscription(
                decode_subscription(base64.b64decode(entry["metadata"])), entry["groupInstanceId"]
            )
            for entry in joined["members"]
        }
        shares = self.assignor.assign(ClusterView(topics), members) if members else {}
        return [
            {
                "memberId": member_id,
                "assignment": base64.b64encode(
                    encode_assignment(
                        Assignment(
                            partitions=tuple(TopicPartition(topic, partition) for topic, partition in share),
                            user_data=None,
                        )
                    )
                ).decode(),
            }
            for member_id, share in shares.items()
        ]

    async def sync(self, joined: dict[str, Any], topics: dict[str, int]) -> list[tuple[str, int]]:
        """SyncGroup; returns the partitions that the coordinator hands out."""
        body = {
            "groupId": "articles",
            "generationId": joined["generationId"],
            "memberId": self.member_id,
            "groupInstanceId": self.instance_id,
            "protocolType": joined["protocolType"],
            "protocolName": joined["protocolName"],
            "assignments": self.assign(joined, topics),
        }
        answer = await self.node.call("SyncGroup", body)
        assert answer["errorCode"] == 0
        assigned = decode_assignment(base64.b64decode(answer["assignment"]))
        return [(topic, partition) for topic, partition in assigned.partitions]


async def run(node: Harness, example: dict[str, Any]) -> Shares:
    """Have all members of an example join one generation, and return what each was handed out."""
    members = [WireMember(node, example["assignor"], member) for member in example["members"]]
    joins = [asyncio.create_task(member.join()) for member in members]
    while await parked(node) < len(members):  # noqa: ASYNC110
        await asyncio.sleep(0)
    node.clock.advance(6_000)
    joined = await asyncio.gather(*joins)
    shares = await asyncio.gather(
        *(member.sync(answer, example["topics"]) for member, answer in zip(members, joined, strict=True))
    )
    return {member.name: share for member, share in zip(members, shares, strict=True)}


async def parked(node: Harness) -> int:
    answer = await node.request("GET", "/groups/articles")
    group = answer.json if answer.status == 200 else {"members": []}
    return sum(member["awaitingJoin"] for member in group["members"])


def as_sets(shares: Any) -> dict[str, set[tuple[str, int]]]:
    return {name: {(topic, partition) for topic, partition in share} for name, share in shares.items()}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example['id']} {example['where']}")
async def test_gives_what_kafka_gives(serve: Serve, example: dict[str, Any]) -> None:
    node = await serve()
    shares = await run(node, example)
    # The order within a member's list does not survive the wire, which groups partitions by topic.
    assert as_sets(shares) == as_sets(example["kafka"])


@pytest.mark.parametrize(
    "example",
    [example for example in EXAMPLES if not example["kafka_agrees"]],
    ids=lambda example: f"{example['source']}: {example['where']}",
)
async def test_the_article_claims_otherwise(serve: Serve, example: dict[str, Any]) -> None:
    node = await serve()
    assert as_sets(await run(node, example)) != as_sets(example["claimed"]), example["explanation"]
