"""Fetches of consumers with racks at three brokers: what leaders and followers answer.

Broker 1, in rack ``a``, leads all topics; brokers 2 and 3 are in rack ``b``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.coordinator.core.partitions.real_topic import batch

Ask = Callable[[int, str, int, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request to a broker: its id, the API, the version, the body; returns the answer."""

RACKS: Final = ("a", "b", "b")
SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
TOPICS: Final = {"both": (1, 2, 3), "second": (1, 2), "third": (1, 3)}
"""Replicas of the only partition of each topic."""
RECORDS: Final = 3
_FETCHES: Final = (10, 11, 12, 13, 16, 18)


class Reader:
    """Asks for partition 0 of topics, and shortens the answers."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._ids: dict[str, str] = {}

    async def prepare(self) -> None:
        """Create the topics."""
        topics: list[dict[str, Any]] = [
            {
                "name": name,
                "numPartitions": -1,
                "replicationFactor": -1,
                "assignments": [{"partitionIndex": 0, "brokerIds": [*replicas]}],
                "configs": [],
            }
            for name, replicas in TOPICS.items()
        ]
        await self._ask(1, "CreateTopics", 5, {"topics": topics, "timeoutMs": 10_000, "validateOnly": False})

    async def write(self) -> dict[str, Any]:
        """Write the records to each topic, and return the racks of the brokers."""
        for name in TOPICS:
            for number in range(RECORDS):
                data = b64encode(batch(f"value {number}", at=0)).decode()
                partition = {"index": 0, "records": data}
                body: dict[str, Any] = {
                    "transactionalId": None,
                    "acks": -1,
                    "timeoutMs": 10_000,
                    "topicData": [{"name": name, "partitionData": [partition]}],
                }
                answer = await self._ask(1, "Produce", 9, body)
                assert answer["responses"][0]["partitionResponses"][0]["errorCode"] == 0, answer
        wanted = [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": name} for name in TOPICS]
        body = {
            "topics": wanted,
            "allowAutoTopicCreation": False,
            "includeTopicAuthorizedOperations": False,
        }
        answer = await self._ask(1, "Metadata", 12, body)
        self._ids = {topic["name"]: topic["topicId"] for topic in answer["topics"]}
        return {str(broker["nodeId"]): broker["rack"] for broker in answer["brokers"]}

    async def fetch(
        self,
        broker: int,
        topic: str,
        *,
        rack: str = "",
        version: int = 16,
        offset: int = 0,
        epoch: int = -1,
        committed: bool = False,
        session: tuple[int, int] = (0, -1),
        goes_on: bool = False,
    ) -> dict[str, Any]:
        """The answer to one Fetch for a partition; with ``goes_on`` for those of its session."""
        partition: dict[str, Any] = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1_000_000}
        partition["logStartOffset"] = -1
        if version >= 9:
            partition["currentLeaderEpoch"] = epoch
        if version >= 12:
            partition["lastFetchedEpoch"] = -1
        named = {"topic": topic} if version < 13 else {"topicId": self._ids[topic]}
        body: dict[str, Any] = {
            "maxWaitMs": 0,
            "minBytes": 1,
            "maxBytes": 1_000_000,
            "isolationLevel": int(committed),
            "sessionId": session[0],
            "sessionEpoch": session[1],
            "topics": [] if goes_on else [{**named, "partitions": [partition]}],
            "forgottenTopicsData": [],
        }
        if version < 15:
            body["replicaId"] = -1
        if version >= 11:
            body["rackId"] = rack
        return await self._ask(broker, "Fetch", version, body)


def shown(answer: dict[str, Any]) -> Any:
    """The only partition of an answer, with the length of its records; an error at the top; or nothing."""
    if answer["errorCode"]:
        return {"errorCode": answer["errorCode"]}
    partitions = [each for topic in answer["responses"] for each in topic["partitions"]]
    if not partitions:
        return None
    (only,) = partitions
    kept = {
        name: value
        for name, value in only.items()
        if name not in {"partitionIndex", "records"} and not _is_unset(value)
    }
    records = only.get("records")
    kept["records"] = None if records is None else len(records)
    endpoints = [each["nodeId"] for each in answer.get("nodeEndpoints", ())]
    return {**kept, "nodeEndpoints": endpoints} if endpoints else kept


def _is_unset(value: Any) -> bool:
    """Whether a tagged field of an answer has its default."""
    return isinstance(value, dict) and all(each == -1 for each in value.values())


async def play(reader: Reader) -> dict[str, Any]:
    """Read as consumers of several racks do; every answer by what was asked."""
    seen: dict[str, Any] = {}

    async def note(name: str, broker: int, topic: str, **asked: Any) -> None:
        seen[name] = shown(await reader.fetch(broker, topic, **asked))

    for version in _FETCHES:
        await note(f"leader, rack b, version {version}", 1, "second", rack="b", version=version)
        await note(f"follower, version {version}", 2, "second", rack="b", version=version)
    await note("leader, rack b, other topic", 1, "third", rack="b")
    await note("leader, rack b, read committed", 1, "second", rack="b", committed=True)
    for rack in ("", "a", "z"):
        await note(f"leader, rack {rack or 'none'}", 1, "second", rack=rack)
        await note(f"follower, rack {rack or 'none'}", 2, "second", rack=rack)
    await note("follower, read committed", 2, "second", rack="b", committed=True)
    for offset in (1, RECORDS, RECORDS + 1, 99, -5):
        await note(f"leader, offset {offset}", 1, "second", rack="b", offset=offset)
        await note(f"follower, offset {offset}", 2, "second", rack="b", offset=offset)
    for epoch in (0, 7):
        await note(f"leader, epoch {epoch}", 1, "second", rack="b", epoch=epoch)
        await note(f"follower, epoch {epoch}", 2, "second", rack="b", epoch=epoch)
    await note("a broker without a replica", 3, "second", rack="b")
    for broker, name in ((1, "leader"), (2, "follower")):
        first = await reader.fetch(broker, "second", rack="b", session=(0, 0))
        assert first["sessionId"] > 0, first
        seen[f"{name}, a session begins"] = shown(first)
        again = await reader.fetch(broker, "second", rack="b", session=(first["sessionId"], 1), goes_on=True)
        seen[f"{name}, the session goes on"] = shown(again)
    return seen


async def play_without_follower(reader: Reader) -> dict[str, Any]:
    """Read as before, after broker 2 was stopped."""
    return {
        "leader, its follower is gone": shown(await reader.fetch(1, "second", rack="b")),
        "leader, one of two is gone": shown(await reader.fetch(1, "both", rack="b")),
    }
