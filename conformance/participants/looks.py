"""Read-only requests: transactions, producers, records by isolation level, ends of logs, offsets of groups."""

from __future__ import annotations

from typing import Any, Final

from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play

ADMIN: Final = "admin"
CONSUMER: Final = "c"
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
BIG: Final = 1_048_576


class Looks:
    """Requests that change nothing."""

    def __init__(self, play: Play, broker: int = 1) -> None:
        self.play = play
        self.broker = broker

    async def ask(self, api: str, body: Json, version: int | None = None, client: str = ADMIN) -> Any:
        return await self.play.ask(client, api, body, version, broker=self.broker)

    async def transactions(self, *transactional_ids: str) -> Any:
        wanted = list(transactional_ids or (self.play.transactional_id,))
        return await self.ask("DescribeTransactions", {"transactionalIds": wanted})

    async def producers(self, *partitions: int, topic: str | None = None) -> Any:
        wanted = list(partitions or range(self.play.script.partitions))
        return await self.ask(
            "DescribeProducers", {"topics": [{"name": topic or self.play.topic, "partitionIndexes": wanted}]}
        )

    async def listed(self, version: int = 2, **filters: Any) -> Any:
        """Of the script's own ids, unless a filter says which."""
        if version >= 2:
            filters = {"transactionalIdPattern": f"{self.play.transactional_id}.*"} | filters
        return await self.ask("ListTransactions", {"stateFilters": [], "producerIdFilters": []} | filters, version)

    async def fetch(
        self, *partitions: int, isolation: int = 1, at: int = 0, version: int = 18, max_bytes: int = BIG, **over: Any
    ) -> Any:
        """Each partition from an offset on, at once."""
        wanted: list[Json] = []
        for partition in partitions or range(self.play.script.partitions):
            one: Json = {"partition": partition, "fetchOffset": at, "partitionMaxBytes": max_bytes}
            one |= {"currentLeaderEpoch": -1} if version >= 9 else {}
            wanted.append(one | ({"lastFetchedEpoch": -1} if version >= 12 else {}))
        topic = {"topicId": self.play.topic_id} if version >= 13 else {"topic": self.play.topic}
        body: Json = {
            "maxWaitMs": 0,
            "minBytes": 1,
            "maxBytes": BIG,
            "isolationLevel": isolation,
            "topics": [{**topic, "partitions": wanted}],
        }
        body |= {"sessionId": 0, "sessionEpoch": -1} if version >= 7 else {}
        return await self.ask("Fetch", body | over, version, CONSUMER)

    async def ends(self, *partitions: int, isolation: int = 1, timestamp: int = LATEST, version: int = 11) -> Any:
        wanted: list[Json] = [
            {"partitionIndex": partition, "timestamp": timestamp} | ({"currentLeaderEpoch": -1} if version >= 4 else {})
            for partition in partitions or range(self.play.script.partitions)
        ]
        body: Json = {"replicaId": -1, "topics": [{"name": self.play.topic, "partitions": wanted}]}
        body |= {"isolationLevel": isolation} if version >= 2 else {}
        return await self.ask("ListOffsets", body, version, CONSUMER)

    async def offsets(self, *partitions: int, stable: bool = False, version: int = 8, group: str | None = None) -> Any:
        """Committed offsets of a group; of all partitions if none is named."""
        name = {"topicId": self.play.topic_id} if version >= 10 else {"name": self.play.topic}
        topics = [{**name, "partitionIndexes": list(partitions)}] if partitions else None
        one: Json = {"groupId": group or self.play.group, "topics": topics}
        body: Json = {"groups": [one], "requireStable": stable}
        if version < 8:
            body = {"groupId": group or self.play.group, "topics": topics}
            body |= {"requireStable": stable} if version >= 7 else {}
        return await self.ask("OffsetFetch", body, version, CONSUMER)

    async def all(self) -> None:
        """The transaction, its partitions, and what a consumer reads of them."""
        await self.transactions()
        await self.producers()
        await self.fetch()
        await self.ends()

    async def both_offsets(self) -> None:
        """The group's offsets, stable ones and any."""
        await self.offsets(0, 1)
        await self.offsets(0, 1, stable=True)
